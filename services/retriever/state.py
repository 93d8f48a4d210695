"""What the retriever keeps in the message store. Its indexes are made from the documents and lie elsewhere."""

from kit.state import Bucket, Watch

_WRITERS = ("retriever",)
LEASE_TTL_S = 15.0

ACTIVE_REVISIONS = Bucket(
    "ACTIVE_REVISIONS",
    holds="the revision of each document that searches show, and the embedding models in whose spaces it lies",
    written_by=_WRITERS,
    needed_by=("DOCUMENTS",),
    watch=Watch.VALUES,
    if_lost="searches do not show the documents; ingestion makes them again",
)
COLLECTION_MODELS = Bucket(
    "COLLECTION_MODELS",
    holds="the embedding model that was chosen for a collection, and its change",
    written_by=_WRITERS,
    needed_by=("COLLECTIONS",),
    watch=Watch.VALUES,
    if_lost="a collection is searched by the models that its documents came with",
)
LEASES = Bucket(
    "RETRIEVER_LEASES",
    holds="which retriever works on a collection's change of models",
    written_by=_WRITERS,
    kept_for_s=LEASE_TTL_S,
    if_lost="leases are taken again",
    not_ours="a random word that only its writer compares",
)
STATE = (ACTIVE_REVISIONS, COLLECTION_MODELS, LEASES)
