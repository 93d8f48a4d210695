"""The settings of the ingest processes. Names and reasons are on each field."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from kit.network.egress import parse_networks
from kit.process.settings import LocalUserSettings, MessageStoreSettings, SigningServiceSettings
from services.ingest.reading.decoding import codec_of_texts

WatchedFolder = Annotated[str, StringConstraints(pattern=r"^(\*|[a-z0-9][a-z0-9_-]{0,63})/[^/]{1,64}$")]
_SCANNER = r"^(unix:/.+|(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})?$"


class IngestSettings(MessageStoreSettings, LocalUserSettings, SigningServiceSettings):
    """Settings of the API and the worker, read from GROUNDWORK_* variables."""

    reranker_address: str = "127.0.0.1:7001"
    """Model server, for embeddings and the tokenizer."""

    retriever_address: str = "127.0.0.1:7002"
    """Search indexes."""

    data_dir: Path = Path("data")
    """Folder for files on their way: `<data_dir>/ingest/`. Nothing in it outlives a restart."""

    upload_limit_bytes: int = Field(default=100 * 1024 * 1024, gt=0)
    """Largest file accepted, in bytes. 100 MiB holds any book and most reports."""

    storage_quota_bytes: int = Field(default=0, ge=0)
    """Bytes of files that a tenant may store, each counted once; 0: without bound. It holds where no rule of limits says how much
    storage the tenant has: `groundwork limits set 'tenant:*' storage=10GiB` takes its place without a restart."""

    storage_quotas: dict[str, int] = Field(default_factory=dict)
    """The same for single tenants, as JSON: {"acme": 10737418240}. One that is named here has this quota instead."""

    scanner: Annotated[str, StringConstraints(pattern=_SCANNER)] = ""
    """Scanner for viruses that decides before a file is stored, which speaks clamd's protocol: `host:port`, or `unix:/path` of its
    socket. Empty: files are not scanned."""

    scanner_timeout_s: float = Field(default=60.0, gt=0)
    """Seconds that scanning a file may take. 100 MiB take clamd some ten."""

    scanner_away: Literal["refuse", "flag"] = "refuse"
    """What happens to an upload that cannot be scanned, since the scanner is away or says that the file is too large for it:
    `refuse` it, or take it and `flag` its document with a warning."""

    upload_idle_timeout_s: float = Field(default=60.0, gt=0)
    """Seconds an upload may stand still before it is refused: a sender that went away must not keep its spool file."""

    ingest_bulk_after: int = Field(default=20, ge=0)
    """Uploads that one caller may send to a collection within a minute before the next ones count as a bulk import, where they do
    not say which they are. What is imported in bulk waits in a lane of its own, and keeps no single upload waiting."""

    ingest_concurrency: int = Field(default=64, ge=1, le=256)
    """Documents a worker has in hand at once. One tenant may have five eighths (40), and an eighth more for single uploads beside a
    bulk import. More than one, so that parsing and
    indexing overlap with embedding, so that the model server has many texts to sort by length, and so that small documents share
    the indexes' commits."""

    ingest_memory_bytes: int = Field(default=256 * 1024**2, ge=16 * 1024**2)
    """Memory that all documents in hand may take in a worker, in bytes: the chunks and vectors that are embedded or sent to the
    index and, up to half of it, the files that are read. What there is no room for waits on local disk. The process itself takes
    some 150 MB more, and a parsing child what PARSE_MEMORY_LIMIT_BYTES allows."""

    ingest_max_chunks: int = Field(default=100_000, ge=1)
    """Chunks that one document may have; a larger one fails as TOO_MANY_CHUNKS. The default is more than 100 MiB of text make, and
    half an hour of a laptop's embedder."""

    parser_processes: int = Field(default=1, ge=1, le=32)
    """Parsing child processes a worker keeps. One parses far faster than two cores embed."""

    parse_time_limit_s: float = Field(default=300.0, gt=0)
    """Seconds a file may take to be read, before it fails as PARSE_TIMEOUT. Begins anew with each page that is read from its
    picture."""

    parse_memory_limit_bytes: int = Field(default=4 * 1024**3, ge=256 * 1024**2)
    """Address space of a parsing child, in bytes. A file of 100 MiB needs about a third of the default, text recognition half
    of it."""

    text_encoding: str = ""
    """Encoding of texts that do not say theirs and are no UTF-8, such as iso-8859-2 or windows-1250. Empty, the default, has it
    guessed for each file; an upload that names its own counts first."""

    ocr_max_pages: int = Field(default=500, ge=0)
    """Pages of one file that are read from their pictures (OCR); the others are reported as not read. 0 switches it off."""

    ocr_time_limit_s: float = Field(default=1800.0, gt=0)
    """Seconds that recognition may take in one file; what is left then is reported as not read. A dense page takes 3 seconds of
    a core, so that the default is enough for 500."""

    ocr_threads: int = Field(default=0, ge=0, le=32)
    """Cores that recognition in one file may keep busy; 0 means half of the machine's: the embedder needs the others."""

    embed_batch_tokens: int = Field(default=4096, ge=64)
    """Tokens in one Embed call: a second's work of a laptop's model, so that progress moves and a retry costs little."""

    embed_batch_texts: int = Field(default=64, ge=1, le=1024)
    """Texts in one Embed call. 64 short ones fill the model server's batches."""

    embed_in_flight: int = Field(default=8, ge=1, le=64)
    """Embed calls of full size that a worker has open at once over all its documents, or as many tokens in smaller ones: the model
    server never waits for the next, and has texts of like length to put together."""

    ingest_lease_ttl_s: float = Field(default=15.0, gt=0)
    """Seconds after which the lease on a document whose worker was killed falls free. Its job comes back no sooner."""

    watched_folders: dict[WatchedFolder, Path] = Field(default_factory=dict)
    """Folders that sources may watch, as JSON: {"acme/contracts": "/srv/contracts", "*/handbook": "/srv/handbook"}. A name begins
    with the tenant that may watch the folder, or with `*` for all. No other folder is ever read. The API's processes read them."""

    source_max_files: int = Field(default=100_000, ge=1)
    """Files that a source may have; one with more fails as SOURCE_TOO_LARGE. A hundred thousand take some 100 MB while they are
    compared."""

    source_access_every_s: float = Field(default=900.0, ge=1)
    """Seconds after which a source that says who may read its files is asked again, also while it is paused. A reader who is taken
    out at the source finds its document that long at most. Google Drive is asked for one list of the files, and in a shared drive
    for the readers of each file."""

    source_access_withhold_after_s: float = Field(default=3600.0, ge=1)
    """Seconds for which a source may be unable to say who may read its files. After that owners of the collection alone read its
    documents, until it says it again."""

    egress_allowed_networks: str = ""
    """Networks that are not public and may be connected to when a source leads there, in CIDR notation with commas between them:
    `10.20.0.0/16`. None by default."""

    ingest_reconcile_interval_s: float = Field(default=3600.0, gt=0)
    """Seconds between two rounds in which all documents are compared with the indexes, and those made again that a lost index or a
    power cut took out of them. The first round is a minute after the start."""

    ingest_scrub_interval_s: float = Field(default=3600.0, gt=0)
    """Seconds between two rounds in which stored files are read and compared with their hash."""

    ingest_scrub_bytes: int = Field(default=1024 * 1024 * 1024, gt=0)
    """Bytes of files that one such round reads; the next goes on where it stopped. A gigabyte an hour reads 100 GB in four days and
    takes a hundredth of an ordinary disk's time."""

    ingest_sweep_interval_s: float = Field(default=15.0, gt=0)
    """Seconds between two looks for documents without a job and deletions that were interrupted."""

    @field_validator("egress_allowed_networks")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        parse_networks(value)
        return value

    @field_validator("text_encoding")
    @classmethod
    def _check_encoding(cls, name: str) -> str:
        try:
            return codec_of_texts(name) if name else ""
        except LookupError as error:
            raise ValueError(f"{name!r} is no encoding of texts; name one as iso-8859-2, or leave it empty") from error
