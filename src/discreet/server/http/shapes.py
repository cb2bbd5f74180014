"""The JSON of requests and replies, as OpenAPI documents it. A request with other fields is
refused.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Amount = int | float | str | None
Text = Annotated[str, StringConstraints(max_length=1 << 20)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]


class Request(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """A reply's body. It may have more fields than are documented."""

    model_config = ConfigDict(extra="allow")


class Question(Request):
    """A question with its price: `epsilon`, or `margin` for the lowest price with this margin."""

    sql: Text
    epsilon: Amount = Field(
        default=None, description="the ε that it may cost; a text such as 1/3 is exact"
    )
    margin: Amount = Field(
        default=None, description="instead of epsilon: the 95 % margin that you accept"
    )
    assuming: int | None = Field(
        default=None, description="how many rows to assume, for margins of means and quantiles"
    )
    dialect: Literal["duckdb", "postgres"] = "duckdb"


class Questions(Request):
    """Several questions, asked one after the other."""

    questions: Annotated[list[Question], Field(min_length=1, max_length=100)]


class LoginBody(Request):
    user: Annotated[str, StringConstraints(max_length=200)]
    password: Annotated[str, StringConstraints(max_length=1000)]


class UserBody(Request):
    name: Name
    role: Literal["analyst", "curator", "auditor"] = "analyst"


class TokenBody(Request):
    days: int | None = None


class PolicyBody(Request):
    text: Text


class BoundsBody(Request):
    table: Name
    column: Name
    epsilon: Amount


class DescriptionBody(Request):
    table: Name
    epsilon: Amount
    columns: list[Name] | None = None


class ErrorFields(Reply):
    kind: str
    sentence: str
    hint: str | None
    line: int | None
    column: int | None
    code: str


class ErrorReply(BaseModel):
    """The one shape of errors."""

    error: ErrorFields


class Budget(BaseModel):
    """An amount: as numbers, and under `exact` as exact rationals."""

    epsilon: float
    delta: float
    rho: float | None
    exact: dict[str, str | None]


class RanksReply(Reply):
    """The margin of a quantile, in ranks.

    `told` is false for each row of the answer whose group is too small for the margin to say
    anything.
    """

    ranks: int
    rows: int = Field(description="a group of so many rows or fewer is too small for this margin")
    range: list[Any] = Field(description="in such a group the value may be anywhere in this range")
    counted: str | None = Field(default=None, description="the column that counts a group's rows")
    told: list[bool | None]


class AnswerReply(Reply):
    """An answer. `margins` has the shape of `rows`, with null for values without a margin."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    margins: list[list[Any]]
    ranks: dict[str, RanksReply] = Field(default={}, description="of each quantile")
    selected: list[bool]
    cost: Budget
    left: Budget
    answer_id: str
    link: str
    question: str
    notes: list[str]
    certificate: dict[str, Any]


class AnswersReply(BaseModel):
    answers: list[dict[str, Any]]


class QuoteReply(Reply):
    """A quote. `margins` has, for each column with a margin, a number or an object that says on
    what it depends.
    """

    columns: list[str]
    statistics: list[dict[str, Any]]
    margins: dict[str, Any]
    max_rows: dict[str, int]
    instead: dict[str, tuple[float, float]] = Field(
        default={},
        description="columns with noise on running totals: their margin, and that of noise on each number",
    )
    shared_by: list[int] = Field(
        default=[], description="about how many people must share a value of an unknown key"
    )
    savings: list[str] = Field(
        default=[], description="sentences: what you could write instead, and what that would save"
    )
    unlisted: list[str] = Field(
        default=[], description="sentences: texts of the question that no listed value is"
    )
    cost: Budget
    left: Budget


class ExplanationReply(BaseModel):
    explanation: list[str]


class ColumnReply(BaseModel):
    """A column. `groups` says which of its values can be group keys: all (public), those that
    enough people share (unknown), or none (never).
    """

    name: str
    type: str
    contains: str
    nullable: bool
    groups: Literal["public", "unknown", "never"]
    key: Literal["owner", "identifier"] | None
    values: list[Any] | None
    range: list[str] | None
    step: str | None


class TableReply(BaseModel):
    name: str
    public: bool
    comment: str
    max_rows: int | None
    max_groups: int | None
    columns: list[ColumnReply]


class TablesReply(BaseModel):
    database: str
    unit: str
    tables: list[TableReply]


class BudgetReply(BaseModel):
    analyst: str
    left: Budget
    limit: Budget
    spent: Budget
    per_question: str | None
    most_per_question: str


class Kept(BaseModel):
    link: str
    when: str
    question: str
    epsilon: str | None
    margin: str | None
    cost: Budget
    rows: int


class Charged(BaseModel):
    id: str
    when: str
    analyst: str
    question: str
    cost: Budget
    snapshot: int
    state: str


class HistoryReply(BaseModel):
    """`answers` are those given over HTTP, newest first. `charges` are all charges, through any
    door.
    """

    answers: list[Kept]
    charges: list[Charged]


class SessionReply(BaseModel):
    user: str
    role: Literal["analyst", "curator", "auditor"]
    analyst: str | None
    csrf: str | None
    database: str
    deadline: float | None


class Standing(BaseModel):
    limit: Budget
    spent: Budget
    left: Budget


class LedgerReply(BaseModel):
    entries: list[Charged]
    total: int
    everybody: Standing
    analysts: dict[str, Standing]


class TokenReply(BaseModel):
    id: str
    made: int
    expires: int | None


class UserReply(BaseModel):
    name: str
    role: str
    locked: bool
    tokens: list[TokenReply]


class UsersReply(BaseModel):
    users: list[UserReply]
    analysts: list[str]


class MadeReply(Reply):
    """A new password or token. It is shown only once."""

    name: str


class CheckReply(BaseModel):
    problems: list[dict[str, Any]]
    groups: dict[str, list[str]]
    next: str


class PolicyReply(BaseModel):
    text: str
    file: str
    served: bool


class PreviewReply(BaseModel):
    problems: list[dict[str, Any]]
    changes: list[str]


class JobReply(BaseModel):
    """Long work. The address `events` sends its events: progress, done (with the result) or failed
    (with the error).
    """

    id: str
    kind: str
    state: Literal["running", "done", "failed"]
    events: str
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class NamesReply(BaseModel):
    names: list[str]


class DescriptionReply(BaseModel):
    link: str
    table: str
    when: str


class DescriptionsReply(BaseModel):
    descriptions: list[DescriptionReply]


class HealthReply(BaseModel):
    status: Literal["ok"]
