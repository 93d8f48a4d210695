"""Who a pod is to the API server, and which secrets it sees: a stolen pod can do what its component does, and nothing else."""

import re
from collections.abc import Iterator

from tests.chart.manifests import Body, Container, Manifest, Pod
from tests.chart.prepared import made_by_prepare
from tests.chart.release import Release, holds
from tests.chart.services import TOKEN_HOLDERS

HOLDERS: dict[str, set[str]] = {
    r"signing-(?P<component>.+)": {"{component}"},
    r"nats-groundwork": {"nats", "backup", "restore"},
    r"nats-routes": {"nats"},
    r"nats-(?P<component>.+)": {"{component}", "nats"},
    r"bootstrap-key": {"gateway", "test", "evaluation"},
    r"(?P<component>.+)-tls": {"{component}"},
    r"qdrant": {"qdrant", "retriever"},
}
"""Who may have a Secret of the release, by the end of its name. Those that the values name are in the table of their case."""

PUBLIC_PART = "ca.crt"
"""Of a Secret with a certificate: whose signature it carries may be known to all."""


@holds
def test_every_component_has_a_service_account_of_its_own(release: Release) -> Iterator[str]:
    owners: dict[str, str] = {}
    for pod in release.pods():
        account = pod.spec.get("serviceAccountName")
        if not account or release.find("ServiceAccount", account) is None:
            yield pod.problem("spec.serviceAccountName", "should name a ServiceAccount of the release")
        elif owners.setdefault(account, pod.component) != pod.component:
            yield pod.problem("spec.serviceAccountName", f"{owners[account]} has the same")


@holds
def test_no_pod_has_a_token_that_it_does_not_need(release: Release) -> Iterator[str]:
    for pod in release.pods():
        needs = pod.component in TOKEN_HOLDERS
        if pod.spec.get("automountServiceAccountToken") is not needs:
            yield pod.problem("spec.automountServiceAccountToken", f"should be {needs}")
        for index, volume in enumerate(pod.spec.get("volumes") or ()):
            if not needs and "serviceAccountToken" in str(volume.get("projected")):
                yield pod.problem(f"spec.volumes[{index}].projected", "should have no token")
    for account in release.of_kind("ServiceAccount"):
        if account.component not in TOKEN_HOLDERS and account.get("automountServiceAccountToken") is not False:
            yield account.problem("automountServiceAccountToken", "should be false")


@holds
def test_only_who_needs_a_token_has_rights_and_only_in_its_namespace(release: Release) -> Iterator[str]:
    for binding in release.of_kind("ClusterRole", "ClusterRoleBinding"):
        yield f"{binding}: the release should have rights in its own namespace only"
    for binding in release.of_kind("RoleBinding"):
        role = release.find("Role", binding.get("roleRef.name"))
        if binding.get("roleRef.kind") != "Role" or role is None:
            yield binding.problem("roleRef", "should be a Role of the release")
        for subject in binding.get("subjects") or ():
            account = release.find("ServiceAccount", subject["name"])
            if subject["kind"] != "ServiceAccount" or account is None or account.component not in TOKEN_HOLDERS:
                yield binding.problem("subjects", f"should be the ServiceAccount of one of {', '.join(TOKEN_HOLDERS)}")
            if subject.get("namespace", release.case.namespace) != release.case.namespace:
                yield binding.problem("subjects", f"should be in {release.case.namespace}")


@holds
def test_rights_are_to_named_objects_as_far_as_kubernetes_can_tell(release: Release) -> Iterator[str]:
    """Creating cannot be limited to names. Reading can, and whoever may list Secrets reads all of them."""
    for role in release.of_kind("Role"):
        for index, rule in enumerate(role.get("rules") or ()):
            where = f"rules[{index}]"
            if "*" in (*rule.get("verbs", ()), *rule.get("resources", ()), *rule.get("apiGroups", ())):
                yield role.problem(where, "should name what it allows")
            if not set(rule["verbs"]) <= {"create"} and not rule.get("resourceNames"):
                yield role.problem(where, "everything but `create` should be limited by resourceNames")
            if {"list", "watch", "deletecollection"} & set(rule["verbs"]):
                yield role.problem(f"{where}.verbs", "listing shows every object of the namespace")


@holds
def test_every_component_sees_its_own_secrets_only(release: Release) -> Iterator[str]:
    for pod in release.pods():
        for kind, name, key, field in references(pod):
            holders = _holders(release, name)
            if kind == "Secret" and key != PUBLIC_PART and pod.component not in holders:
                yield f"{pod}: {field} is the Secret {name}, which is for {', '.join(sorted(holders)) or 'nobody'}"


@holds
def test_every_secret_and_config_map_that_a_pod_names_is_there(release: Release) -> Iterator[str]:
    there = {(each.kind, each.name): set(_keys(each)) for each in release.of_kind("Secret", "ConfigMap")}
    there |= {(made.kind, made.name): set(made.keys) for made in made_by_prepare(release)}
    there |= {
        ("Secret", each.spec["secretName"]): {"tls.crt", "tls.key", "ca.crt"} for each in release.of_kind("Certificate")
    }
    there |= {("Secret", name): set(given.keys) for name, given in release.case.given_secrets.items()}
    there |= {each: set() for each in release.case.given_names if each[0] == "ConfigMap"}
    for pod in release.pods():
        for kind, name, key, field in references(pod):
            if (kind, name) not in there:
                yield f"{pod}: {field} names the {kind} {name}, which nobody makes"
            elif key and key not in there[kind, name]:
                yield f"{pod}: {field} names the key {key} of the {kind} {name}, which has {sorted(there[kind, name])}"


@holds
def test_no_secret_is_written_into_a_manifest_that_others_read(release: Release) -> Iterator[str]:
    """Who may read pods, or `helm get manifest`, should not learn passwords: they come from Secrets."""
    for container in release.containers():
        for entry in container.body.get("env") or ():
            if re.search(r"(KEY|PASSWORD|TOKEN|SECRET)$", entry["name"]) and entry.get("value"):
                yield container.variable_problem(entry["name"], "should come from a Secret")


def references(pod: Pod) -> Iterator[tuple[str, str, str, str]]:
    """Kind, name, key (empty: all) and field of each Secret and ConfigMap that the pod needs; optional ones are left out."""
    for index, volume in enumerate(pod.spec.get("volumes") or ()):
        yield from _of_volume(volume, f"spec.volumes[{index}]")
    for container in pod.containers():
        yield from _of_environment(container)


def _of_volume(volume: Body, field: str) -> Iterator[tuple[str, str, str, str]]:
    sources = [volume, *(volume.get("projected") or {}).get("sources", ())]
    for source in sources:
        for part, kind, name in (("secret", "Secret", "secretName"), ("configMap", "ConfigMap", "name")):
            named = source.get(part)
            if named and not named.get("optional"):
                keys = [item["key"] for item in named.get("items") or ()] or [""]
                yield from ((kind, named.get(name) or named["name"], key, f"{field}.{part}") for key in keys)


def _of_environment(container: Container) -> Iterator[tuple[str, str, str, str]]:
    for index, entry in enumerate(container.body.get("env") or ()):
        for part, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
            named = (entry.get("valueFrom") or {}).get(part)
            if named and not named.get("optional"):
                yield kind, named["name"], named["key"], f"spec.{container.path}.env[{index}] ({entry['name']})"
    for index, entry in enumerate(container.body.get("envFrom") or ()):
        for part, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
            if part in entry and not entry[part].get("optional"):
                yield kind, entry[part]["name"], "", f"spec.{container.path}.envFrom[{index}]"


def _holders(release: Release, secret: str) -> set[str]:
    if given := release.case.given_secrets.get(secret):
        return set(given.holders)
    end = secret.removeprefix(f"{release.fullname}-")
    for pattern, holders in HOLDERS.items():
        found = re.fullmatch(pattern, end)
        if found:
            return {holder.format(**found.groupdict()) for holder in holders}
    return set()


def _keys(manifest: Manifest) -> Iterator[str]:
    for part in ("data", "stringData", "binaryData"):
        yield from manifest.body.get(part) or ()
