"""Results of KQL queries, and their conversion to data frames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a query result.

    Attributes:
        name: name of the column.
        type: Kusto type, for instance ``datetime`` or ``real``.
    """

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Governance:
    """Approval of a warm query (saved KQL query); both attributes are None for an ad-hoc query.

    Attributes:
        approved_by: principal that approved the query.
        approved_at: time of the approval, RFC 3339.
    """

    approved_by: str | None
    approved_at: str | None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Result of a KQL query.

    Attributes:
        query: name of the warm query, or ``ad-hoc``.
        executed_at: time of the execution, RFC 3339.
        columns: columns in the order of the query.
        rows: rows as dictionaries of values by column name.
        governance: approval of the query.
        truncated: True if the query has further rows, which were omitted because of the limit.
    """

    query: str
    executed_at: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    governance: Governance
    truncated: bool

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> "QueryResult":
        """Parse a query result from the JSON reply of the service."""
        governance = reply["governance"]
        return cls(
            query=reply["query"],
            executed_at=reply["executedAt"],
            columns=[Column(each["name"], each["type"]) for each in reply["columns"]],
            rows=reply["results"],
            governance=Governance(governance["queryApprovedBy"], governance["queryApprovedAt"]),
            truncated=reply["truncated"],
        )

    def __len__(self) -> int:
        """Return the number of rows in this result."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Iterate over the rows of this result."""
        return iter(self.rows)

    def to_arrow(self) -> "pa.Table":
        """Convert the rows to an Arrow table; requires the extra ``arrow``.

        ``datetime`` columns become UTC timestamps in microseconds, ``dynamic`` columns JSON text, and ``guid`` columns
        text. The JSON of a text in a ``dynamic`` column has quotes.
        """
        from oi.tables import build_arrow_table  # noqa: PLC0415  pyarrow is optional

        return build_arrow_table(self.columns, self.rows)

    def to_pandas(self) -> "pd.DataFrame":
        """Convert the rows to a pandas data frame; requires the extra ``pandas``.

        Columns of integers with nulls have the types ``Int64`` and ``Int32`` of pandas, because the usual conversion to
        floating-point numbers changes integers beyond 2^53. A missing value is ``pandas.NA``.
        """
        import pandas  # noqa: ICN001, PLC0415  optional
        import pyarrow  # noqa: ICN001, PLC0415  optional

        table = self.to_arrow()
        nullable = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.int32(): pandas.Int32Dtype()}
        complete = {
            field.name: str(field.type)
            for field, column in zip(table.schema, table.columns, strict=True)
            if field.type in nullable and not column.null_count
        }
        return table.to_pandas(types_mapper=nullable.get).astype(complete)

    def to_polars(self) -> "pl.DataFrame":
        """Convert the rows to a Polars data frame; requires the extra ``polars``."""
        import polars  # noqa: ICN001, PLC0415  optional

        frame = polars.from_arrow(self.to_arrow())
        if not isinstance(frame, polars.DataFrame):
            raise TypeError("Polars returned a series instead of a data frame")
        return frame
