"""Addresses that lead inside, read in a network namespace that has nothing but loopback: a hole sends nothing anywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.tools.web.attacks import PRIVATE, PUBLIC

ROOT = Path(__file__).resolve().parents[4]
DATA = Path(os.environ.get("TEST_DOCUMENTS_DIR", ROOT.parent / "shared/data/docs")).parent
PAYLOADS = DATA / "sec_ssrf_web_payloads/ssrf_urls.jsonl"
UNSHARE = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
OWN = [
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fe80::a9fe:a9fe%25lo]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://169.254.170.2/v2/credentials",
    "http://168.63.129.16/machine",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://10.0.0.5:6379/",
    "http://127.1/",
    "http://0/",
    "http://0177.0.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://127.0.0.1.nip.io/",
    "http://169-254-169-254.sslip.io/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://public.test@127.0.0.1/",
    "http://127.0.0.1#@public.test/",
    "http://127.0.0.1\\@public.test/",
    "http://public.test:80@127.0.0.1/",
    "http://127.0.0.1:80\t/",
    "http:///127.0.0.1/",
    "http:127.0.0.1/",
    "//127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "dict://127.0.0.1:11211/stats",
    "data:text/html,x",
    "http://rebind.test/",
    "http://mixed.test/",
    "http://evil.test/",
    "http://public.test/",
]


def attacked(urls: list[str], module: str = "tests.service.tools.web.attacks") -> dict[str, Any]:
    """What came of the addresses, each read by the program of that module in a network of its own."""
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("it takes Linux with unshare and ip")
    if subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine gives no network namespaces")
    up = "; ".join(["ip link set lo up", *(f"ip address add {each} dev lo" for each in (*PRIVATE, f"{PUBLIC}/32"))])
    program = [sys.executable, "-m", module]
    done = subprocess.run(
        [*UNSHARE, "sh", "-ec", f'{up}; exec "$@"', "sh", *program],
        input=json.dumps(urls),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # before it, what was logged
    return told


def read_inside(outcomes: dict[str, str]) -> dict[str, str]:
    """What was read from anywhere but the public server."""
    return {url: said for url, said in outcomes.items() if said.startswith("read") and not said.endswith(".test")}


def test_addresses_that_lead_inside_reach_nothing_inside() -> None:
    told = attacked(OWN)
    assert told["reached"] == [PUBLIC]
    read = {url for url, said in told["outcomes"].items() if said.startswith("read")}
    assert {"http://public.test/", "http://mixed.test/"} <= read
    assert read_inside(told["outcomes"]) == {}
    assert read_inside(told["behind_redirects"]) == {}


@pytest.mark.skipif(not PAYLOADS.exists(), reason=f"no {PAYLOADS}")
def test_published_attacks_reach_nothing_inside() -> None:
    urls = [json.loads(line)["url"] for line in PAYLOADS.read_text().splitlines()]
    told = attacked(urls)
    assert set(told["reached"]) <= {PUBLIC}
    assert [said for said in told["outcomes"].values() if said.startswith("read")] == []
    assert len(told["outcomes"]) > 150
