"""The contracts of the last release (protos/released.binpb) beside today's, in a pool of their own: what a process of that release
reads and writes."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import groundwork
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message

FILE = Path(__file__).resolve().parents[3] / "protos" / "released.binpb"
_OURS = "groundwork/"


@cache
def _pool() -> tuple[descriptor_pool.DescriptorPool, tuple[str, ...]]:
    files = descriptor_pb2.FileDescriptorSet.FromString(FILE.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool, tuple(file.name for file in files if file.name.startswith(_OURS))


def released(name: str) -> type[Message]:
    """A message class of the last release."""
    return message_factory.GetMessageClass(_pool()[0].FindMessageTypeByName(name))


@cache
def todays() -> "dict[str, type[Message]]":
    """Every message class of today, by full name."""
    found: dict[str, type[Message]] = {}
    for module in pkgutil.walk_packages(groundwork.__path__, "groundwork."):
        if module.name.endswith("_pb2"):
            file = importlib.import_module(module.name).DESCRIPTOR
            for descriptor in file.message_types_by_name.values():
                found |= {each.full_name: message_factory.GetMessageClass(each) for each in _with_nested(descriptor)}
    return found


def released_names() -> list[str]:
    """Full names of the messages of the last release."""
    pool, files = _pool()
    tops = [kind for file in files for kind in pool.FindFileByName(file).message_types_by_name.values()]
    return sorted(each.full_name for top in tops for each in _with_nested(top))


def released_methods() -> list[MethodDescriptor]:
    pool, files = _pool()
    services = [service for file in files for service in pool.FindFileByName(file).services_by_name.values()]
    return [method for service in services for method in service.methods]


def _with_nested(descriptor: Descriptor) -> list[Descriptor]:
    if descriptor.GetOptions().map_entry:
        return []
    return [descriptor, *(each for nested in descriptor.nested_types for each in _with_nested(nested))]
