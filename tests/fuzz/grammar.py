"""Statements to try: a grammar of SELECTs over a world's tables, hostile ones among them, and
mutations of all of them.

The grammar knows the kinds of columns, so that most of what it writes is nearly answerable: what is
refused at once tests little. `statement` draws one statement; its class is for the counts.
"""

from __future__ import annotations

import random
import re

from .draw import Draw, lines, words
from .relations import Relations
from .schemas import KINDS, Columns
from .totals import Totals

AGGREGATES = lines("""
    COUNT(*)
    COUNT({x})
    COUNT(DISTINCT {owner})
    COUNT(DISTINCT {owner})
    COUNT(DISTINCT CASE WHEN {flag} THEN {owner} END)
    COUNT(DISTINCT {x})
    COUNT(DISTINCT ({x}, {number}))
    SUM({number})
    SUM({number})
    AVG({number})
    {VARIANCE|STDDEV|VAR_POP|VAR_SAMP|STDDEV_POP}({number})
    {CORR|COVAR_POP|COVAR_SAMP}({number}, {number})
    {MIN|MAX|MEDIAN}({number})
    {MIN|MAX|MEDIAN}({time})
    {QUANTILE_CONT|QUANTILE_DISC|QUANTILE}({number}, {0.5|0|1|0.99})
    QUANTILE_{CONT|DISC}({number}, [{0.1, 0.9|0.25, 0.5, 0.75|0.5|0.9, 0.1|0, 1}])
    QUANTILE_DISC({time}, [{0.1, 0.9|0.5}])
    PERCENTILE_{CONT|DISC}({0.9|0.5}) WITHIN GROUP (ORDER BY {number})
    MODE({category})
    MODE({x})
    {COUNT_IF|COUNTIF}({flag})
    APPROX_COUNT_DISTINCT({x})
    {REGR_COUNT|REGR_AVGX|REGR_AVGY}({number}, {number})
    REGR_{SLOPE|INTERCEPT|R2}({number}, {number})
    {SKEWNESS|KURTOSIS|KURTOSIS_POP}({number})
    {GEOMEAN|HARMONIC_MEAN}(GREATEST({number}, {1|2}))
    COUNT(DISTINCT CASE WHEN {flag} THEN {x} END)
    """)
COMPUTED = lines("""
    100.0 * COUNT_IF({flag}) / COUNT(*)
    SUM({number}) / COUNT(*)
    ROUND(AVG({number}), {0|2}) {+|-|*} SUM({number})
    QUANTILE_CONT({number}, [0.25, 0.75])[{1|2|3}]
    COALESCE(SUM({number}), 0) + 1
    CASE WHEN COUNT(*) > 2 THEN AVG({number}) END
    SUM(COUNT(*)) OVER ()
    RANK() OVER (ORDER BY COUNT(*))
    CAST(COUNT(*) AS VARCHAR)
    {SQRT|EXP|LN}(VARIANCE({number}))
    POWER(SUM({number}), {3|1000|0.5})
    CAST(SUM({number}) AS {TINYINT|DECIMAL(4, 1)|DOUBLE|VARCHAR|BOOLEAN})
    SUM({number}) * COUNT({x}) * COUNT(*)
    COUNT(*) {/|//|%} COUNT({x}) + 1 {/|//|%} 0
    MAX({number}) - MIN({number})
    MARGIN({COUNT|AVG|SUM|MEDIAN}({number}))
    MARGIN(COUNT(*) / 2)
    MARGIN(COUNT(*) / SUM(COUNT(*)) OVER ())
    SUM({number}) - MARGIN(SUM({number}))
    SUM(COUNT(*)) OVER (ORDER BY {COUNT(*)|1})
    JSON_BUILD_OBJECT('n', COUNT(*), 'x', SUM({number}))
    """)
GROUPINGS = lines("""
    {keys}
    {keys}
    {positions}
    {names}
    ALL
    ROLLUP ({keys})
    CUBE ({keys})
    {keys} WITH ROLLUP
    GROUPING SETS (({first}), ())
    GROUPING SETS (({keys}), ({last}), ())
    GROUPING SETS (({first}), ({last}))
    GROUPING SETS (ROLLUP ({keys}), ())
    {ROLLUP|CUBE} ({positions})
    {ROLLUP|CUBE} ({names})
    {first}, ROLLUP ({last})
    """)
TAILS = lines("""
    HAVING COUNT(*) > 3
    HAVING {aggregate} > 0
    ORDER BY a0 DESC LIMIT 2
    ORDER BY 1
    ORDER BY ALL
    ORDER BY COUNT(*) DESC, 1
    LIMIT 2 OFFSET 1
    LIMIT 1 + {1|2 * 3}
    ORDER BY {a0|1|COUNT(*)} DESC FETCH FIRST {1|2} ROWS WITH TIES
    QUALIFY ROW_NUMBER() OVER (ORDER BY a0) <= 2
    """)
ABOVE = lines("""
    SELECT COUNT(*) FROM ({q}) AS q
    SELECT {SUM|MAX|AVG|MEDIAN}(a0) FROM ({q}) AS q WHERE a0 > 0
    SELECT *, RANK() OVER (ORDER BY a0) FROM ({q}) AS q
    SELECT DISTINCT a0 FROM ({q}) AS q ORDER BY a0 LIMIT 3
    SELECT DISTINCT ON (a0) * FROM ({q}) AS q ORDER BY a0
    SELECT {JSON_AGG(q)|JSON_AGG(a0 ORDER BY a0)|TO_JSON(q)|ROW_TO_JSON(q)} FROM ({q}) AS q
    SELECT q.a0 FROM ({q}) AS q {SEMI|ANTI} JOIN ({r}) AS r {USING (a0)|ON r.a0 = q.a0|ON r.a0 > q.a0}
    SELECT (a0 - LAG(a0) OVER (ORDER BY 1)) / (a0 + 1) AS x FROM ({q}) AS q
    SELECT TOP {1|(2)} a0 FROM ({q}) AS q ORDER BY 1
    SELECT a0 // 10 AS g, COUNT(*) FROM ({q}) AS q GROUP BY g
    {q} {UNION ALL|UNION|INTERSECT|EXCEPT} {r}
    SELECT q.a0 / r.a0 FROM ({q}) AS q, ({r}) AS r
    SELECT q.a0 - r.a0 AS x FROM ({q}) AS q {LEFT JOIN|JOIN|FULL JOIN} ({r}) AS r ON q.a0 = r.a0
    WITH q AS ({q}) SELECT a.a0 - b.a0 FROM q AS a JOIN q AS b ON a.a0 = b.a0
    WITH q AS ({q}), r AS ({r}) SELECT COUNT(*) FROM q WHERE EXISTS (SELECT 1 FROM r WHERE r.a0 > q.a0)
    SELECT q.*, s.population FROM ({q}) AS q JOIN states AS s ON q.a0 = s.level
    SELECT ({q}) {+|*|-} COUNT(*) FROM visits WHERE cost > 2
    SELECT SUM(a0) * SUM(a0) - MAX(a0) FROM ({q}) AS q
    SELECT {ARG_MAX|ARG_MIN}(a0, a0), BOOL_{OR|AND}(a0 > 0) FROM ({q}) AS q
    SELECT {QUANTILE_CONT|QUANTILE_DISC}(a0, {0.5|0.9|2}) FROM ({q}) AS q
    WITH q AS ({q}) SELECT a0, (SELECT a0 FROM q WHERE a0 {>|<|=} {0|5|1000}) AS x FROM q
    WITH q AS ({q}) SELECT a0 / (SELECT a0 FROM q ORDER BY a0 LIMIT 1) FROM q WHERE a0 = (SELECT MAX(a0) FROM q)
    WITH q AS ({q}) SELECT (SELECT state FROM states WHERE level > (SELECT MIN(a0) FROM q)) AS x
    SELECT CASE WHEN a0 > (SELECT AVG(population) FROM states) THEN 'a' ELSE 'b' END FROM ({q}) AS q
    SELECT (SELECT COUNT(*) FROM people) + COUNT(*) FROM visits WHERE cost > 2
    SELECT *, SUM(a0) OVER (ORDER BY {1|a0}) AS c, MARGIN({a0|SUM(a0) OVER ()}) AS e FROM ({q}) AS q
    SELECT a0 - LAG(a0) OVER (ORDER BY a0) AS d, a0 - MARGIN(a0) AS lo FROM ({q}) AS q WHERE MARGIN(a0) > {0|1e9}
    SELECT SUM(a0) AS s, MARGIN(SUM(a0)) AS e FROM ({q}) AS q {|ORDER BY e|HAVING SUM(a0) > 0}
    SELECT MARGIN(a0) AS e FROM ({q}) AS q {UNION ALL|UNION} SELECT MARGIN(a0) FROM ({r}) AS r
    SELECT q.a0, c.column_name FROM ({q}) AS q JOIN information_schema.columns AS c ON c.ordinal_position = q.a0
    SELECT COUNT(*) FROM information_schema.{tables|columns} WHERE LENGTH(table_name) < (SELECT MAX(a0) FROM ({q}))
    """)
HOSTILE = lines("""
    SELECT * FROM {from}
    FROM {from}
    SELECT DISTINCT {text} FROM {from}
    SELECT DISTINCT ON ({number}) {number}, COUNT(*) FROM {from} GROUP BY 1
    SELECT {number} FROM {from} LIMIT 1
    SELECT {owner} FROM {from} ORDER BY COUNT(*) OVER ()
    SELECT COUNT(*) FROM (SELECT * FROM {from} ORDER BY {number} LIMIT 1) AS t
    SELECT SUM({number}) FROM {from} WHERE {number} > (SELECT AVG({number}) FROM {from})
    SELECT COUNT(*) FROM {from} WHERE {|NOT }EXISTS (SELECT 1 FROM people WHERE age > 5)
    SELECT COUNT(*) FROM {from} WHERE {|NOT }EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = {owner} OR cost > 2)
    SELECT COUNT(*) FROM states LEFT JOIN people ON states.state = people.zip
    SELECT COUNT(*) FROM {from} {FULL|SEMI|ANTI|ASOF LEFT|NATURAL|POSITIONAL|CROSS} JOIN visits AS z
    SELECT COUNT(*) FROM {from} {FULL JOIN|SEMI JOIN|ANTI JOIN|FULL OUTER JOIN} visits AS z ON z.person_id = {owner}
    SELECT COUNT(*) FROM {from} RIGHT JOIN states AS s ON s.level = {number}
    SELECT COUNT(*) FROM {from} WHERE {number} {NOT IN|IN} (SELECT cost FROM visits)
    SELECT COUNT(*) FROM {from} WHERE {owner} {NOT IN|IN} (SELECT NULLIF(person_id, 1) FROM visits)
    SELECT COUNT(*) FROM {from} WHERE {x} {IN|NOT IN} ()
    SELECT COUNT(*) FROM {from} WHERE {owner} {=|>} {ALL|ANY} (SELECT person_id FROM visits)
    SELECT COUNT(*) FROM {from} WHERE (SELECT COUNT(*) FROM visits AS v WHERE v.person_id = {owner}) > 2
    SELECT SUM({number}) FROM {from} {SEMI|ANTI} JOIN visits AS z ON z.person_id = {owner}{| AND z.cost > 2| OR TRUE}
    SELECT SUM(s.x) FROM (SELECT DISTINCT ON ({owner}) {number} AS x FROM {from} ORDER BY {owner}, {number}) AS s
    SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY NULLIF({owner}, {owner}) ORDER BY 1) AS n FROM {from}) AS t
    SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY {number}) AS n FROM {from}) AS t
    SELECT SUM(n) FROM (SELECT SUM(1) OVER w AS n FROM {from} WINDOW w AS (PARTITION BY {owner})) AS t
    SELECT COUNT(*) FROM (SELECT {number} AS n FROM {from} {EXCEPT|INTERSECT|UNION} SELECT age FROM people) AS t
    SELECT COUNT(*) FROM (SELECT {owner} AS o FROM {from} UNION ALL SELECT {NULL|1|level FROM states}) AS t
    SELECT COUNT(*) FROM {from}, visits AS z
    SELECT COUNT(*) FROM {from}, visits AS z WHERE z.person_id = {owner}
    SELECT COUNT(*) FROM {from} JOIN visits AS z ON z.cost = {number}
    SELECT COUNT(*) FROM {from} JOIN visits AS z ON {z.person_id = 50|z.person_id <> 1} {OR|AND} z.person_id = {owner}
    SELECT {owner}, COUNT(*) FROM {from} GROUP BY {owner}
    SELECT COUNT(*) OVER (), COUNT(*) FROM {from}
    SELECT SUM({number}) FROM {from} WHERE {random()|RAND()|uuid()} < 0.5
    SELECT COUNT(*) FROM {from} WHERE {date} < {CURRENT_DATE|NOW()|today()}
    SELECT COUNT(*) FROM {from} {TABLESAMPLE 10%|USING SAMPLE 3 ROWS|TABLESAMPLE RESERVOIR(2)}
    SELECT COUNT(*) FROM {from} WHERE {flag} UNION SELECT COUNT(*) FROM {from}
    SELECT SUM(error('x')) FROM {from}
    SELECT COUNT(*) FROM {from} WHERE {REGEXP_MATCHES|REGEXP_FULL_MATCH|GLOB}({text}, '(a+)+$')
    SELECT {MAX|MIN|SUM|MODE|MEDIAN|AVG}({owner}) FROM {from}
    SELECT {STRING_AGG|LIST|HISTOGRAM|FIRST|MAX_BY}({text}{|, ','}) FROM {from}
    SELECT SUM(CASE WHEN {flag} THEN 1000000 ELSE 0 END) FROM {from}
    SELECT COUNT(*) FILTER (WHERE {flag}) / COUNT(*) FROM {from}
    SELECT COUNT(*) FROM {from} WHERE {COALESCE|NULLIF|GREATEST|HASH}({owner}, 1) = 1
    SELECT COUNT(*) FROM (SELECT {owner} AS p FROM {from}) AS t JOIN people ON t.p = people.person_id
    SELECT k, COUNT(*) FROM (SELECT CAST({owner} AS VARCHAR) AS k FROM {from}) AS t GROUP BY k
    SELECT {ANY_VALUE|FIRST|LAST|PRODUCT|ENTROPY|KURTOSIS|BIT_OR|GEOMEAN|MAD}({number}) FROM {from}
    SELECT {ARG_MAX|MAX|MIN}({number}, 3) FROM {from}
    SELECT SUM({number} ORDER BY {number}) FROM {from}
    SELECT SUM(DISTINCT {number}) FROM {from}
    SELECT QUANTILE_CONT({number}, {[]|2|-0.1|NULL|[0.5, NULL]|0.5 + 0.1}) FROM {from}
    SELECT COUNT(*) FROM {from} CROSS JOIN LATERAL (SELECT {number} AS v) AS l
    SELECT COUNT(*) FROM {from}, UNNEST([1, 2]) AS u(x)
    SELECT COUNT(*) FROM {from} WHERE {flag} GROUP BY ALL
    WITH RECURSIVE c AS (SELECT {owner} AS o FROM {from}) SELECT COUNT(*) FROM c
    WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c) SELECT COUNT(*) FROM c, {from}
    SELECT COUNT(DISTINCT {owner}) FROM {from} WHERE {owner} = {owner} + 0
    SELECT AVG({number}) FILTER (WHERE {owner} IN (SELECT person_id FROM visits LIMIT 1)) FROM {from}
    SELECT SUM(COLUMNS({'.*'|*})) FROM {from}
    SELECT COUNT("#owner"), MAX(rowid) FROM {people|visits}
    SELECT SUM({number}) AS "{#margin a|"" ; DROP TABLE people|#}" FROM {from}
    SELECT COUNT(*) FROM {duckdb_tables()|information_schema.tables|read_text('/etc/passwd')|'people.csv'|range(9)}
    SELECT {getenv('HOME')|current_setting('threads')|version()|pg_sleep(1)|nextval('s')}, COUNT(*) FROM {from}
    SELECT GROUPING({number}), COUNT(*) FROM {from} GROUP BY ROLLUP ({category})
    SELECT {category} AS k, COUNT(*) FROM {from} GROUP BY CUBE (k, k, k, k, k, k)
    SELECT COUNT(*) FROM {from} GROUP BY GROUPING SETS ((), (), ())
    PIVOT {people|visits} ON {sex|clinic} USING {COUNT(*)|SUM(cost)|FIRST(person_id)}
    SELECT * FROM (PIVOT visits ON clinic USING SUM(cost) GROUP BY {person_id|day})
    UNPIVOT people ON age, income
    {SUMMARIZE|DESCRIBE|SHOW|EXPLAIN|EXPLAIN ANALYZE} SELECT COUNT(*) FROM {from}
    {CREATE TABLE t AS|INSERT INTO people|COPY people TO 'x';|SELECT 1;|SET threads = 1;} SELECT COUNT(*) FROM {from}
    SELECT COUNT(*) FROM {from} WHERE {number} > {?|$1|:a|@a}
    SELECT COUNT(*) /* {flag} */ FROM {from} -- {number}
    SELECT COUNT(*) FROM {from} WHERE {deep}
    SELECT COUNT(*) FROM {from} WHERE MARGIN({number}) > 1
    SELECT SUM(MARGIN({number})), MARGIN(MARGIN(COUNT(*))) FROM {from}
    SELECT COUNT(*) FROM {from} LEFT JOIN visits AS z ON z.person_id = {owner} WHERE z.person_id IS NULL
    SELECT COUNT(*) FROM {from} LEFT JOIN visits AS z ON z.person_id = {owner} AND z.cost > 2 WHERE z.cost IS NULL
    SELECT SUM({number}) FROM {from} JOIN visits AS z ON z.person_id = {owner} WHERE z.cost > 2
    SELECT COUNT(*) FROM {from} JOIN information_schema.columns AS c ON c.ordinal_position = {number}
    {SHOW TABLES|DESCRIBE people|SHOW COLUMNS FROM visits|DESCRIBE SELECT 1|SHOW people}
    """)
WORDS = words("""
    NULL 0 1 -1 * ( ) , NOT DISTINCT ALL person_id age income day seen LEFT FULL CROSS UNION EXCEPT OVER FILTER WHERE
    LIMIT OFFSET QUALIFY HAVING ORDER BY GROUP COUNT SUM MAX MODE NULLIF COALESCE LEAST CAST TRUE AS IN EXISTS visits
    people labs states 'a' 1e30 0.1 :: || / % [ ] LATERAL PIVOT USING NATURAL SEMI ANTI ASOF POSITIONAL WINDOW
    MARGIN TABLESAMPLE EXCLUDE REPLACE ROLLUP CUBE GROUPING SETS INTERVAL WITHIN ANY INTERSECT VALUES RECURSIVE
    """)
SORTS = {
    "column": re.compile(r"\w+\.\w+"),
    "constant": re.compile(r"'.*'|[\d.]+|NULL|TRUE|FALSE"),
    "name": re.compile(r"[a-z]\w*"),
    "word": re.compile(r"[A-Z_]+"),
    "bracket": re.compile(r"[(),]"),
}


class Grammar:
    """Draws statements about one schema."""

    def __init__(self, schema: str, source: random.Random) -> None:
        self.draw = Draw(source)
        self.relations = Relations(schema, self.draw)
        self.of = self.relations.of
        totals = Totals(self.relations, self.relations.where)
        self.measured_otherwise = {
            "running total": totals.running,
            "beside grouping sets": totals.beside_sets,
            "side by side": totals.side_by_side,
            "listed keys": totals.listed_keys,
        }

    def statement(self) -> tuple[str, str]:
        """A statement's class, and the statement."""
        self.draw.aliases = 0
        kind = self.draw.source.choices(
            ("question", "above noise", "hostile", "mutated", *self.measured_otherwise),
            (45, 10, 10, 17, 8, 3, 4, 3),
        )[0]
        if kind in self.measured_otherwise:
            sql = self.measured_otherwise[kind](self.draw.any(0, 0, 1, 1, 2))
            if self.draw.maybe(0.1):
                sql = self.of.filled(self.draw.any(*ABOVE), {}, 0, q=sql, r=self.question(1))
            return kind, self.mutated(sql) if self.draw.maybe(0.1) else sql
        match kind:
            case "above noise":
                return kind, self.of.filled(
                    self.draw.any(*ABOVE), {}, 0, q=self.question(1), r=self.question(1)
                )
            case "hostile":
                return kind, self.hostile()
            case "mutated":
                return kind, self.mutated(self.question(self.draw.any(0, 1, 2)))
        return kind, self.question(self.draw.any(0, 1, 1, 2, 2, 3))

    def question(self, depth: int) -> str:
        inner, columns = self.relations.relation(depth)
        named = ""
        if self.draw.maybe(0.15):
            named, inner, columns = self.named(inner, columns)
        kinds = [
            self.of.kind(columns, "category", *KINDS) for _ in range(self.draw.any(0, 0, 1, 1, 2))
        ]
        keys = [self.of.expression(columns, kind, 1) for kind in kinds]
        items = [f"{key} AS k{index}" for index, key in enumerate(keys)]
        items += [
            f"{self.aggregate(columns)} AS a{index}"
            for index in range(self.draw.any(1, 1, 1, 2, 3))
        ]
        group = f" GROUP BY {self.grouping(keys)}" if keys else ""
        if keys and self.draw.maybe(0.1):
            items.append(f"GROUPING({keys[-1]}) AS g")
        tail = ""
        if self.draw.maybe(0.4):
            tail = " " + self.of.filled(
                self.draw.any(*TAILS), columns, 1, aggregate=self.aggregate(columns)
            )
        return f"{named}SELECT {', '.join(items)} FROM {inner}{self.relations.where(columns)}{group}{tail}"

    def aggregate(self, columns: Columns) -> str:
        if self.draw.maybe(0.1):
            return self.of.filled(self.draw.any(*COMPUTED), columns, 1)
        form = self.of.filled(self.draw.any(*AGGREGATES), columns, self.draw.any(1, 2))
        return form + (
            f" FILTER (WHERE {self.relations.condition(columns)})" if self.draw.maybe(0.15) else ""
        )

    def grouping(self, keys: list[str]) -> str:
        form, places = self.draw.any(*GROUPINGS), range(len(keys))
        names, positions = (
            ", ".join(f"k{index}" for index in places),
            ", ".join(str(index + 1) for index in places),
        )
        listed = ", ".join(keys)
        return self.of.filled(
            form, {}, 0, keys=listed, first=keys[0], last=keys[-1], names=names, positions=positions
        )

    def named(self, inner: str, columns: Columns) -> tuple[str, str, Columns]:
        """The relation under a WITH name, used twice."""
        owner = self.of.column(columns, "owner")
        if owner is None:
            return "", inner, columns
        kinds = {"o": "owner", "x": self.draw.any(*KINDS), "y": "number"}
        x, y = self.of.expression(columns, kinds["x"]), self.of.expression(columns, "number", 1)
        a, b, word = self.draw.alias(), self.draw.alias(), self.draw.any("JOIN", "LEFT JOIN")
        both = {f"{alias}.{name}": kind for alias in (a, b) for name, kind in kinds.items()}
        if word == "LEFT JOIN":
            both[f"{b}.o"] = "id"
        chain = self.draw.any("", ", d AS (SELECT * FROM c WHERE y > 0)")
        head = f"WITH c AS (SELECT {owner} AS o, {x} AS x, {y} AS y FROM {inner}){chain} "
        return head, f"c AS {a} {word} {'d' if chain else 'c'} AS {b} ON {a}.o = {b}.o", both

    def hostile(self) -> str:
        inner, columns = self.relations.relation(1)
        deep = "(" * 60 + self.of.expression(columns, "flag") + ")" * 60
        deep = self.draw.any(deep, " OR ".join([deep] * 40), "NOT " * 300 + deep)
        return self.of.filled(self.draw.any(*HOSTILE), columns, 2, deep=deep, **{"from": inner})

    def mutated(self, text: str) -> str:
        """A statement with a few of its words dropped, doubled, or put in place of others: mostly
        of the same sort.
        """
        found = re.findall(r"'[^']*'|\w+(?:\.\w+)*|[<>=|:/]+|[^\s\w]", text)
        for _ in range(self.draw.any(1, 1, 2, 3)):
            place, word = self.draw.source.randrange(len(found)), self.draw.any(*found, *WORDS)
            match self.draw.source.randrange(8):
                case 0:
                    found.insert(place, word)
                case 1:
                    del found[place]
                    found = found or ["SELECT"]
                case 2:
                    found[place] = word
                case _:
                    found[place] = self.draw.any(
                        *(each for each in (*found, *WORDS) if sort(each) == sort(found[place]))
                    )
        return " ".join(found)


def sort(word: str) -> str:
    """What a word of a statement looks like: words of one sort may often stand in for each
    other.
    """
    found = next((name for name, form in SORTS.items() if form.fullmatch(word)), "sign")
    return word if found == "bracket" else found
