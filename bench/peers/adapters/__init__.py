"""The peers, one file each. None of these modules imports its peer's package before the peer is used."""

from bench.peers.adapters.beanstalkd import Beanstalkd
from bench.peers.adapters.huey_sqlite import HueySqlite
from bench.peers.adapters.lite_queue import LiteQueue
from bench.peers.adapters.naive_rocksdb import NaiveRocksDB
from bench.peers.adapters.persist_queue import PersistQueue
from bench.peers.adapters.postgresql import PostgreSQL
from bench.peers.adapters.redis_streams import RedisStreams
from bench.peers.adapters.telha import Telha
from bench.peers.protocol import Peer

SUBJECT: Peer = Telha()
PEERS: tuple[Peer, ...] = (
    Beanstalkd(),
    RedisStreams(),
    PostgreSQL(),
    NaiveRocksDB(),
    PersistQueue(),
    LiteQueue(),
    HueySqlite(),
)
