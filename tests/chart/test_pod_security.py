"""Every pod keeps the Pod Security standard `restricted`: ours, those of other servers, of hooks, jobs and tests. And it goes
beyond it: its root is read only, its user has a number, and its memory is limited.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.chart.manifests import Body, Container, Pod
from tests.chart.release import Release, holds

USER = 65532
VOLUME_KINDS = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
"""Those that the standard allows: none of them is a part of the node."""
OTHERS_USERS = {"elasticsearch": 1000}
"""Images whose files belong to a user of their own."""
SIZES = ("cpu", "memory")


@holds
def test_no_pod_shares_a_namespace_of_its_node(release: Release) -> Iterator[str]:
    for pod in release.pods():
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(field):
                yield pod.problem(f"spec.{field}", "leave it out")


@holds
def test_no_pod_mounts_a_part_of_its_node(release: Release) -> Iterator[str]:
    for pod in release.pods():
        for index, volume in enumerate(pod.spec.get("volumes") or ()):
            kinds = set(volume) - {"name"}
            if not kinds <= VOLUME_KINDS:
                yield pod.problem(f"spec.volumes[{index}]", f"allowed are {', '.join(sorted(VOLUME_KINDS))}")


@holds
def test_no_container_has_a_port_of_its_node(release: Release) -> Iterator[str]:
    for container in release.containers():
        for index, port in enumerate(container.body.get("ports") or ()):
            if port.get("hostPort") or port.get("hostIP"):
                yield container.problem(f"ports[{index}]", "leave hostPort and hostIP out")


@holds
def test_every_container_runs_as_a_numbered_user_who_is_not_root(release: Release) -> Iterator[str]:
    for container in release.containers():
        if _effective(container, "runAsNonRoot") is not True:
            yield container.problem("securityContext.runAsNonRoot", "should be true, here or for the pod")
        user = _effective(container, "runAsUser")
        expected = OTHERS_USERS.get(container.pod.component, USER)
        if user != expected:
            yield container.problem(
                "securityContext.runAsUser", f"should be {expected}, here or for the pod, not {user}"
            )


@holds
def test_every_pod_has_a_group_that_may_write_its_volumes(release: Release) -> Iterator[str]:
    for pod in release.pods():
        security = pod.spec.get("securityContext") or {}
        claims = [name for name, volume in pod.volumes().items() if "persistentVolumeClaim" in volume]
        if (claims or pod.owner.get("spec.volumeClaimTemplates")) and not security.get("fsGroup"):
            yield pod.problem(
                "spec.securityContext.fsGroup", "a new volume belongs to root: only a group makes it writable"
            )


@holds
def test_every_container_has_a_read_only_root(release: Release) -> Iterator[str]:
    for container in release.containers():
        if container.get("securityContext.readOnlyRootFilesystem") is not True:
            yield container.problem("securityContext.readOnlyRootFilesystem", "should be true")


@holds
def test_no_container_may_gain_privileges(release: Release) -> Iterator[str]:
    for container in release.containers():
        if container.get("securityContext.allowPrivilegeEscalation") is not False:
            yield container.problem("securityContext.allowPrivilegeEscalation", "should be false")
        if container.get("securityContext.privileged"):
            yield container.problem("securityContext.privileged", "leave it out")


@holds
def test_every_container_drops_all_capabilities_and_adds_none(release: Release) -> Iterator[str]:
    for container in release.containers():
        if container.get("securityContext.capabilities") != {"drop": ["ALL"]}:
            yield container.problem("securityContext.capabilities", "should be {'drop': ['ALL']}")


@holds
def test_every_container_has_the_runtimes_seccomp_profile(release: Release) -> Iterator[str]:
    for container in release.containers():
        if (_effective(container, "seccompProfile") or {}).get("type") != "RuntimeDefault":
            yield container.problem(
                "securityContext.seccompProfile", "should be {'type': 'RuntimeDefault'}, here or for the pod"
            )


@holds
def test_no_pod_turns_protections_of_its_node_off(release: Release) -> Iterator[str]:
    for pod in release.pods():
        contexts = [("spec.securityContext", pod.spec.get("securityContext") or {})]
        contexts += [
            (f"spec.{each.path}.securityContext", each.body.get("securityContext") or {}) for each in pod.containers()
        ]
        for field, context in contexts:
            for setting in ("sysctls", "appArmorProfile", "seLinuxOptions", "procMount", "windowsOptions"):
                if context.get(setting):
                    yield pod.problem(f"{field}.{setting}", "leave it to the node")


@holds
def test_every_container_that_does_the_work_can_write_to_tmp(release: Release) -> Iterator[str]:
    """Libraries and other makers' programs count on it, and the root is read only."""
    for pod in release.pods():
        for container in (each for each in pod.containers() if not each.is_init):
            writable = {PurePosixPath(mount["mountPath"]) for mount in container.mounts() if _is_writable(pod, mount)}
            if PurePosixPath("/tmp") not in writable:
                yield container.problem("volumeMounts", "should have an emptyDir at /tmp")


@holds
def test_every_empty_dir_has_a_size_limit(release: Release) -> Iterator[str]:
    """Without one a pod can fill its node's disk, and the node evicts others."""
    for pod in release.pods():
        for index, volume in enumerate(pod.spec.get("volumes") or ()):
            if "emptyDir" in volume and not (volume["emptyDir"] or {}).get("sizeLimit"):
                yield pod.problem(f"spec.volumes[{index}].emptyDir", "should have a sizeLimit")


@holds
def test_every_container_requests_processor_and_memory_and_is_limited_in_memory(release: Release) -> Iterator[str]:
    for container in release.containers():
        for size in SIZES:
            if not container.get(f"resources.requests.{size}"):
                yield container.problem(f"resources.requests.{size}", "the scheduler and the autoscaler need it")
        if not container.get("resources.limits.memory"):
            yield container.problem("resources.limits.memory", "without it one leak takes the node's memory")


def _effective(container: Container, field: str) -> object:
    """The container's own setting, else its pod's."""
    own = container.get(f"securityContext.{field}")
    return (container.pod.spec.get("securityContext") or {}).get(field) if own is None else own


def _is_writable(pod: Pod, mount: Body) -> bool:
    volume = pod.volumes().get(mount["name"], {"volumeClaimTemplate": {}})
    return not mount.get("readOnly") and not {"configMap", "secret", "projected", "downwardAPI"} & set(volume)
