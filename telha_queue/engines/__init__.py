"""What stores the jobs. Only `Queue` and the test kit import from here; everything else talks to the queue."""
