"""A new release and other settings, and the way back, while people use it."""

import json

import pytest

from kit.testing.openai import ScriptedModel
from tests.cluster.conftest import model_values
from tests.cluster.facts import reply_to_traffic
from tests.cluster.release import NAME, Release
from tests.cluster.report import Report
from tests.cluster.unbroken import used_meanwhile

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]


def images_of(release: Release) -> set[str]:
    """Tags that our own pods run."""
    prefix = f"{release.settings.images.registry}/groundwork-"
    images = [each["image"] for pod in release.cluster.pods() for each in pod.raw["spec"]["containers"]]
    return {image.rpartition(":")[2] for image in images if image.startswith(prefix) and "-nats:" not in image}


def test_no_request_fails_during_an_upgrade_and_a_rollback(release: Release, operator_key: str, report: Report) -> None:
    following = release.settings.next_images
    if following is None:
        pytest.skip("no second images: set GROUNDWORK_TEST_NEXT_IMAGES=REGISTRY:TAG")
    about = (
        "`helm upgrade --wait` to images of another tag, while two ask, one talks and two upload; nobody tries again."
    )
    with report.section("Upgrade to new images", about) as section:
        used_meanwhile(release, operator_key, lambda: release.upgrade(following.values), section)
        assert images_of(release) == {following.tag}
    with report.section("Rollback", "`helm rollback --wait` to the images before, under the same traffic.") as section:
        used_meanwhile(release, operator_key, release.rollback, section)
        assert images_of(release) == {release.settings.images.tag}


def test_no_request_fails_when_values_change_and_change_back(
    release: Release, operator_key: str, model: ScriptedModel, report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "reply_to", reply_to_traffic)
    about = "`helm upgrade --wait` to a language model, other log levels and drains, and `helm rollback`, under the same traffic."
    values = {**model_values(model), "telemetry.logLevel": "WARNING", "drain.graceSeconds": "25"}

    def there_and_back() -> None:
        release.upgrade(values)
        model_asked = json.dumps([pod.raw["spec"] for pod in release.cluster.pods("orchestrator")])
        assert model.base_url in model_asked
        release.rollback()

    with report.section("Changed values and back", about) as section:
        used_meanwhile(release, operator_key, there_and_back, section)
    assert NAME in release.cluster.helm("list", "--deployed", "-q")
