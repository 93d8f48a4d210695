"""Who queued a job is proved by the job's token; work whose job cannot prove it gets a new one."""

from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from kit.access.principal import Principal
from kit.jetstream import Job, Nats
from services.ingest.documents import records
from services.ingest.documents.models import IngestJob
from services.ingest.handlers import JobHandler
from services.ingest.metrics import Metrics
from services.ingest.upkeep import sweeping
from tests.service.ingest.conftest import System
from tests.service.ingest.test_ingest_service import FAILED, READY

EARLIER_HEADERS = {"Groundwork-Tenant": "local", "Groundwork-Subject": "tester", "Groundwork-Scopes": ""}


async def test_a_job_that_an_earlier_version_queued_is_done_after_all(
    system: System, jetstream: Nats, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweeping, "QUIET_BEFORE_SWEEP", timedelta(0))
    system.settings = system.settings.model_copy(update={"ingest_sweep_interval_s": 0.1})
    queued = await system.upload(b"Some text.", "a.txt")
    (subject,) = (await jetstream.js.stream_info("INGEST", subjects_filter=">")).state.subjects
    job = await jetstream.js.get_last_msg("INGEST", subject)
    # As if days had passed: with the stream goes the memory of this job's id, which the server keeps for two minutes.
    config = (await jetstream.js.stream_info("INGEST")).config
    await jetstream.js.delete_stream("INGEST")
    await jetstream.js.add_stream(config)
    await jetstream.js.publish(subject, job.data or b"", headers=EARLIER_HEADERS)
    async with system.worker():
        done = await system.until(queued.document_id, READY, FAILED)
    assert done.status == READY, done.error
    assert "job_refused" in capsys.readouterr().out


async def test_a_tenant_cannot_queue_work_for_another() -> None:
    handled = []

    class Attempts:
        async def run(self, job: IngestJob, delivery: int) -> None:
            handled.append(job.tenant_id)

    handler = JobHandler(Attempts(), Metrics(CollectorRegistry()))  # type: ignore[arg-type]
    for tenant_id in ("acme", "globex"):
        data = records.encode_job(IngestJob(tenant_id, "document", "revision"))
        await handler.handle(Job("revision", data, 1, Principal("acme", "ann")))
    assert handled == ["acme"]
