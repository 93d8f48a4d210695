"""An S3 server: moto's, a double that checks signatures and rights as Amazon's does. It serves real HTTP on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import boto3
import httpx
from botocore.config import Config
from moto.core import enable_iam_authentication
from moto.server import ThreadedMotoServer

BUCKET = "papers"
_ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
_READER = "reader"


class Bucket:
    """A bucket, whose reader has a key."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._keeper = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
        self.secrets: dict[str, str] = {}

    def make(self) -> None:
        httpx.post(
            f"{self.url}/moto-api/reset"
        ).raise_for_status()  # all of its servers in a process share what they hold
        iam = self._client("iam")
        self._client("s3").create_bucket(Bucket=BUCKET)
        for user in ("keeper", _READER):
            iam.create_user(UserName=user)
            iam.put_user_policy(UserName=user, PolicyName="all", PolicyDocument=json.dumps(_ALL))
        key = iam.create_access_key(UserName="keeper")["AccessKey"]
        self._keeper = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        self._grant()

    async def write(self, key: str, content: str) -> None:
        await self._s3("put_object", Key=key, Body=content.encode())

    async def rename(self, key: str, new: str) -> None:
        await self._s3("copy_object", Key=new, CopySource={"Bucket": BUCKET, "Key": key})
        await self.delete(key)

    async def delete(self, key: str) -> None:
        await self._s3("delete_object", Key=key)

    async def grant(self) -> None:
        """Gives the reader another key."""
        await asyncio.to_thread(self._grant)

    async def revoke(self) -> None:
        """Takes the reader's key away."""
        iam = self._client("iam")
        key = self.secrets["access_key"]
        await asyncio.to_thread(iam.delete_access_key, UserName=_READER, AccessKeyId=key)

    async def _s3(self, method: str, **arguments: Any) -> None:
        await asyncio.to_thread(lambda: getattr(self._client("s3"), method)(Bucket=BUCKET, **arguments))

    def _grant(self) -> None:
        key = self._client("iam").create_access_key(UserName=_READER)["AccessKey"]
        self.secrets = {"access_key": key["AccessKeyId"], "secret_key": key["SecretAccessKey"]}

    def _client(self, service: str) -> Any:
        config = Config(s3={"addressing_style": "path"})
        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", config=config, **self._keeper)


@asynccontextmanager
async def bucket() -> AsyncIterator[Bucket]:
    """Nobody gets in without a key that is signed with."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    await asyncio.to_thread(server.start)
    try:
        host, port = server.get_host_and_port()
        made = Bucket(f"http://{host}:{port}")
        await asyncio.to_thread(made.make)
        with enable_iam_authentication():
            yield made
    finally:
        await asyncio.to_thread(server.stop)
