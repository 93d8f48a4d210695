"""What is wrong with a pod: its rights, its secrets, its life."""

from tests.mutations.breaks import GATEWAY, MAIN, MEMORY, NATS, POD, REMOVED, WORKER, Break, env

SECURITY = (
    Break("no_pod_shares_a_namespace_of_its_node", MEMORY, f"{POD}.hostPID", True),
    Break("no_pod_shares_a_namespace_of_its_node", "Pod/groundwork-test", "spec.hostNetwork", True),
    Break(
        "no_pod_mounts_a_part_of_its_node",
        MEMORY,
        f"{POD}.volumes[0]",
        {"name": "x", "hostPath": {"path": "/"}},
        ("volumes[0]",),
    ),
    Break(
        "no_container_has_a_port_of_its_node",
        MEMORY,
        f"{MAIN}.ports[0]",
        {"containerPort": 1, "hostPort": 1},
        ("ports[0]",),
    ),
    Break(
        "every_container_runs_as_a_numbered_user_who_is_not_root", MEMORY, f"{POD}.securityContext.runAsNonRoot", False
    ),
    Break("every_container_runs_as_a_numbered_user_who_is_not_root", MEMORY, f"{POD}.securityContext.runAsUser", 0),
    Break("every_container_runs_as_a_numbered_user_who_is_not_root", MEMORY, f"{MAIN}.securityContext.runAsUser", 0),
    Break("every_pod_has_a_group_that_may_write_its_volumes", NATS, f"{POD}.securityContext.fsGroup", REMOVED),
    Break("every_container_has_a_read_only_root", MEMORY, f"{MAIN}.securityContext.readOnlyRootFilesystem", False),
    Break("no_container_may_gain_privileges", MEMORY, f"{MAIN}.securityContext.allowPrivilegeEscalation", REMOVED),
    Break("no_container_may_gain_privileges", MEMORY, f"{MAIN}.securityContext.privileged", True),
    Break(
        "every_container_drops_all_capabilities_and_adds_none",
        MEMORY,
        f"{MAIN}.securityContext.capabilities",
        {"drop": []},
    ),
    Break(
        "every_container_has_the_runtimes_seccomp_profile",
        MEMORY,
        f"{POD}.securityContext.seccompProfile",
        {"type": "Unconfined"},
    ),
    Break(
        "no_pod_turns_protections_of_its_node_off",
        MEMORY,
        f"{POD}.securityContext.sysctls",
        [{"name": "a", "value": "b"}],
    ),
    Break("every_container_that_does_the_work_can_write_to_tmp", MEMORY, f"{MAIN}.volumeMounts", []),
    Break(
        "every_empty_dir_has_a_size_limit", MEMORY, f"{POD}.volumes[0]", {"name": "x", "emptyDir": {}}, ("emptyDir",)
    ),
    Break(
        "every_container_requests_processor_and_memory_and_is_limited_in_memory",
        MEMORY,
        f"{MAIN}.resources.limits",
        {},
        ("limits.memory",),
    ),
    Break(
        "every_container_requests_processor_and_memory_and_is_limited_in_memory",
        MEMORY,
        f"{MAIN}.resources.requests",
        {},
        ("cpu",),
    ),
)

IDENTITY = (
    Break("every_component_has_a_service_account_of_its_own", MEMORY, f"{POD}.serviceAccountName", "default"),
    Break(
        "every_component_has_a_service_account_of_its_own",
        MEMORY,
        f"{POD}.serviceAccountName",
        "groundwork-tools",
        ("memory has the same",),
    ),
    Break("no_pod_has_a_token_that_it_does_not_need", MEMORY, f"{POD}.automountServiceAccountToken", True),
    Break(
        "no_pod_has_a_token_that_it_does_not_need",
        "ServiceAccount/groundwork-memory",
        "automountServiceAccountToken",
        REMOVED,
    ),
    Break(
        "only_who_needs_a_token_has_rights_and_only_in_its_namespace",
        "RoleBinding/groundwork-prepare",
        "subjects[0].name",
        "groundwork-memory",
        ("subjects",),
    ),
    Break(
        "only_who_needs_a_token_has_rights_and_only_in_its_namespace",
        "RoleBinding/groundwork-prepare",
        "roleRef.kind",
        "ClusterRole",
        ("roleRef",),
    ),
    Break(
        "rights_are_to_named_objects_as_far_as_kubernetes_can_tell",
        "Role/groundwork-prepare",
        "rules[1].resourceNames",
        REMOVED,
        ("rules[1]",),
    ),
    Break(
        "rights_are_to_named_objects_as_far_as_kubernetes_can_tell",
        "Role/groundwork-prepare",
        "rules[1].verbs",
        ["list"],
        ("rules[1]",),
    ),
    Break(
        "every_component_sees_its_own_secrets_only",
        MEMORY,
        f"{POD}.volumes[0]",
        {"name": "x", "secret": {"secretName": "groundwork-signing-gateway"}},
        ("groundwork-signing-gateway",),
    ),
    Break(
        "every_component_sees_its_own_secrets_only",
        MEMORY,
        f"{MAIN}.envFrom",
        [{"secretRef": {"name": "another"}}],
        ("another",),
    ),
    Break(
        "every_secret_and_config_map_that_a_pod_names_is_there",
        "ConfigMap/groundwork-nats",
        "",
        REMOVED,
        (NATS, "ConfigMap groundwork-nats"),
    ),
    Break(
        "every_secret_and_config_map_that_a_pod_names_is_there",
        MEMORY,
        f"{MAIN}.env[0]",
        env("A", {"secretKeyRef": {"name": "groundwork-nats-memory", "key": "key"}}),
        ("password",),
    ),
    Break(
        "no_secret_is_written_into_a_manifest_that_others_read",
        MEMORY,
        f"{MAIN}.env[0]",
        env("NATS_PASSWORD", "secret"),
        ("NATS_PASSWORD",),
    ),
)

LIFE = (
    Break("every_lasting_container_has_split_probes", MEMORY, f"{MAIN}.startupProbe", REMOVED),
    Break("every_lasting_container_has_split_probes", MEMORY, f"{MAIN}.livenessProbe", {"grpc": {"port": 7000}}),
    Break(
        "services_are_asked_for_readiness_by_grpc_unless_kubelet_cannot",
        MEMORY,
        f"{MAIN}.readinessProbe",
        {"tcpSocket": {"port": 7000}},
    ),
    Break(
        "services_are_asked_for_readiness_by_grpc_unless_kubelet_cannot",
        MEMORY,
        f"{MAIN}.readinessProbe",
        {"grpc": {"port": 7000}},
        case="TLS by cert-manager",
    ),
    Break(
        "services_are_asked_for_life_at_their_operations_port",
        MEMORY,
        f"{MAIN}.livenessProbe.httpGet.path",
        "/readyz",
        ("livenessProbe",),
    ),
    Break(
        "services_are_asked_for_life_at_their_operations_port",
        MEMORY,
        f"{MAIN}.startupProbe.httpGet.path",
        "/readyz",
        ("startupProbe",),
    ),
    Break("probes_go_to_ports_that_the_container_has", NATS, f"{MAIN}.livenessProbe.httpGet.port", "monitoring"),
    Break("a_pod_has_time_to_start", MEMORY, f"{MAIN}.startupProbe.failureThreshold", 3, ("startupProbe",)),
    Break(
        "a_pod_ends_after_those_who_send_it_requests_have_noticed",
        MEMORY,
        f"{MAIN}.lifecycle.preStop",
        {"exec": {"command": ["true"]}},
    ),
    Break("a_pod_has_time_to_end_what_it_has_in_hand", MEMORY, f"{POD}.terminationGracePeriodSeconds", 30),
    Break(
        "a_pod_has_time_to_end_what_it_has_in_hand",
        MEMORY,
        f"{MAIN}.lifecycle.preStop.sleep.seconds",
        20,
        ("terminationGracePeriodSeconds",),
    ),
    Break("servers_of_others_have_time_to_end_as_well", NATS, f"{POD}.terminationGracePeriodSeconds", 10),
    Break(
        "pods_leave_a_node_that_is_gone_soon", MEMORY, f"{POD}.tolerations[0].tolerationSeconds", 300, ("tolerations",)
    ),
    Break(
        "no_roll_out_counts_as_stuck_while_a_pod_may_still_start",
        "Deployment/groundwork-reranker",
        "spec.progressDeadlineSeconds",
        600,
    ),
    Break(
        "a_hook_finds_its_account_its_rights_and_its_ways_there",
        "NetworkPolicy/groundwork-prepare",
        "metadata.annotations",
        {},
        ("NetworkPolicy/groundwork-prepare",),
    ),
    Break("jobs_end", "Job/groundwork-prepare", "spec.activeDeadlineSeconds", REMOVED),
    Break("jobs_end", "CronJob/groundwork-evaluation", "spec.concurrencyPolicy", "Allow", case="an evaluation"),
    Break("jobs_end", "CronJob/groundwork-backup", "spec.concurrencyPolicy", "Allow", case="backups"),
    Break(
        "hooks_are_removed_before_they_are_made_again",
        "Job/groundwork-prepare",
        "metadata.annotations",
        {"helm.sh/hook": "pre-install"},
        ("before-hook-creation",),
    ),
)

NUMBERS = (
    Break("every_workload_has_one_disruption_budget", "PodDisruptionBudget/groundwork-memory", "", REMOVED, (MEMORY,)),
    Break(
        "every_disruption_budget_selects_the_pods_of_one_workload",
        "PodDisruptionBudget/groundwork-memory",
        "spec.selector",
        {"matchLabels": {"app.kubernetes.io/name": "groundwork"}},
    ),
    Break(
        "every_disruption_budget_selects_the_pods_of_one_workload",
        "PodDisruptionBudget/groundwork-memory",
        "spec.selector.matchLabels",
        {"a": "b"},
        ("nobody",),
    ),
    Break("every_disruption_budget_allows_a_drain", "PodDisruptionBudget/groundwork-memory", "spec.maxUnavailable", 0),
    Break(
        "every_disruption_budget_allows_a_drain", "PodDisruptionBudget/groundwork-memory", "spec.maxUnavailable", "0%"
    ),
    Break(
        "every_disruption_budget_allows_a_drain",
        "PodDisruptionBudget/groundwork-memory",
        "spec",
        {"minAvailable": 2, "selector": {"matchLabels": {}}},
        ("minAvailable",),
    ),
    Break("a_roll_out_waits_for_the_elections_of_a_message_stores_server", NATS, "spec.minReadySeconds", REMOVED),
    Break(
        "a_broken_pod_holds_up_no_drain_that_leaves_a_majority",
        "PodDisruptionBudget/groundwork-memory",
        "spec.unhealthyPodEvictionPolicy",
        REMOVED,
    ),
    Break(
        "a_broken_pod_holds_up_no_drain_that_leaves_a_majority",
        "PodDisruptionBudget/groundwork-nats",
        "spec.unhealthyPodEvictionPolicy",
        "AlwaysAllow",
    ),
    Break(
        "autoscalers_scale_workloads_of_the_release_within_their_bounds",
        "HorizontalPodAutoscaler/groundwork-memory",
        "spec.scaleTargetRef.name",
        "memory",
        ("scaleTargetRef",),
        case="autoscaling",
    ),
    Break(
        "autoscalers_scale_workloads_of_the_release_within_their_bounds",
        "HorizontalPodAutoscaler/groundwork-memory",
        "spec.maxReplicas",
        1,
        ("min ≤ max",),
        case="autoscaling",
    ),
    Break(
        "autoscalers_say_how_fast_they_scale",
        "HorizontalPodAutoscaler/groundwork-memory",
        "spec.behavior.scaleDown",
        {},
        case="autoscaling",
    ),
    Break(
        "autoscalers_say_how_fast_they_scale",
        "ScaledObject/groundwork-ingest-worker",
        "spec.advanced",
        {},
        ("scaleUp",),
        case="KEDA",
    ),
    Break(
        "what_an_autoscaler_measures_is_there",
        MEMORY,
        f"{MAIN}.resources.requests",
        {},
        ("requests no cpu",),
        case="autoscaling",
    ),
    Break(
        "every_workload_has_one_autoscaler_at_most",
        "HorizontalPodAutoscaler/groundwork-memory",
        "spec.scaleTargetRef.name",
        "groundwork-tools",
        ("groundwork-tools",),
        case="autoscaling",
    ),
    Break("a_workload_with_an_autoscaler_has_no_number_of_its_own", MEMORY, "spec.replicas", 2, case="autoscaling"),
    Break("of_every_stateless_service_there_are_two", MEMORY, "spec.replicas", 1, ("without a second one",)),
    Break(
        "of_every_stateless_service_there_are_two",
        "HorizontalPodAutoscaler/groundwork-memory",
        "spec.minReplicas",
        1,
        ("without a second one",),
        case="autoscaling",
    ),
    Break("pods_of_a_workload_are_spread_over_nodes", MEMORY, f"{POD}.topologySpreadConstraints", []),
    Break(
        "pods_of_a_workload_are_spread_over_nodes", MEMORY, f"{POD}.topologySpreadConstraints[0].labelSelector", REMOVED
    ),
    Break(
        "several_replicas_of_one_store_never_share_a_node_that_need_not_be_shared",
        NATS,
        f"{POD}.topologySpreadConstraints[0].whenUnsatisfiable",
        "ScheduleAnyway",
        ("topologySpreadConstraints",),
    ),
    Break("services_roll_without_fewer_pods", GATEWAY, "spec.strategy.rollingUpdate.maxUnavailable", 1),
)

IMAGES = (
    Break(
        "pods_have_a_checksum_of_the_configuration_that_they_read_once",
        NATS,
        "spec.template.metadata.annotations",
        {},
        ("checksum of groundwork-nats",),
    ),
    Break("every_image_has_a_registry_and_a_version", MEMORY, f"{MAIN}.image", "localhost/groundwork-memory:latest"),
    Break("every_image_has_a_registry_and_a_version", MEMORY, f"{MAIN}.image", "groundwork-memory:1"),
    Break("every_image_of_ours_is_a_target_of_the_dockerfile", MEMORY, f"{MAIN}.image", "localhost/groundwork-mem:dev"),
    Break(
        "registry_and_tag_of_our_images_are_those_of_the_values",
        MEMORY,
        f"{MAIN}.image",
        "localhost/groundwork-memory:1",
    ),
    Break("pull_secrets_and_the_pull_policy_are_those_of_the_values", MEMORY, f"{MAIN}.imagePullPolicy", "Always"),
    Break(
        "pull_secrets_and_the_pull_policy_are_those_of_the_values",
        WORKER,
        f"{POD}.imagePullSecrets",
        REMOVED,
        case="images of one's own",
    ),
)

BREAKS = (*SECURITY, *IDENTITY, *LIFE, *NUMBERS, *IMAGES)
