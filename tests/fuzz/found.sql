-- Statements that once broke the promise, with what they did. The fuzzer's check runs each on every run.

-- a window over everybody: NULLIF of an owner was taken for an owner
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY NULLIF(person_id, person_id) ORDER BY age) AS n FROM people) AS t WHERE n <= 1;
SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY NULLIF(person_id, person_id) ORDER BY age) AS n FROM people) AS t;
SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY NULLIF(person_id, visit_id) ORDER BY cost) AS n FROM visits) AS t;

-- an engine error that only rows with large values raise: LEAST and GREATEST cast their arguments to the result's size
SELECT SUM(LEAST(big * big, 5)) FROM visits;
SELECT SUM(GREATEST(0 - big * cost * cost, -5)) FROM visits;
SELECT SUM(LEAST(income * income * income * income * income * income, 5)) FROM people;

-- an engine error in a quotient: twice the dividend and the divisor did not fit together
SELECT SUM((age * 100 + 4600000000000) / (age + 4600000000000000000)) FROM people;

-- DATE_DIFF in weeks was bounded as Mondays passed while the engine counts stretches of seven days: a value off its grid
SELECT SUM(DATE_DIFF('week', born, DATE '1970-01-05')) FROM people;
SELECT DATE_DIFF('week', born, DATE '1969-12-14'), COUNT(*) FROM people GROUP BY 1;
SELECT DATE_DIFF('week', born, DATE '1919-12-28'), COUNT(*) FROM people GROUP BY 1;
SELECT AVG(DATE_DIFF('week', day, DATE '2023-12-24')), AVG(DATE_DIFF('week', born, DATE '1969-12-14')) FROM visits JOIN people ON visits.person_id = people.person_id;
SELECT DATE_DIFF('week', DATE '2024-01-01', day), COUNT(*) FROM visits GROUP BY 1;

-- a constant of the side of an outer join that may be missing is two values
SELECT b.one, COUNT(DISTINCT a.person_id) FROM visits AS a LEFT JOIN (SELECT person_id, 1 AS one FROM people) AS b ON a.person_id = b.person_id AND a.cost > 3 GROUP BY b.one;

-- texts that double until memory runs out, for people who have one; joins that multiply until time does
WITH a AS (SELECT person_id, name || name AS n FROM people), b AS (SELECT person_id, n || n AS n FROM a), c AS (SELECT person_id, n || n AS n FROM b), d AS (SELECT person_id, n || n AS n FROM c), e AS (SELECT person_id, n || n AS n FROM d), f AS (SELECT person_id, n || n AS n FROM e), g AS (SELECT person_id, n || n AS n FROM f), h AS (SELECT person_id, n || n AS n FROM g) SELECT COUNT(DISTINCT n) FROM h;
SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id JOIN visits c ON a.person_id = c.person_id JOIN visits d ON a.person_id = d.person_id JOIN visits e ON a.person_id = e.person_id JOIN visits f ON a.person_id = f.person_id JOIN visits g ON a.person_id = g.person_id JOIN visits h ON a.person_id = h.person_id;

-- an engine error for rows far out on a grid of more than 2^63 cells
SELECT MEDIAN(big * cost), QUANTILE_CONT(big * cost * cost, 0.9) FROM visits;
SELECT clinic, MAX(big * cost - big) FROM visits GROUP BY clinic;

-- a constant that does not fit the type it is cast to left a range that ends before it begins
SELECT CAST(46000000000 AS TINYINT) AS k, COUNT(*) FROM people GROUP BY 1;
SELECT SUM(CAST(age + 46000000000 AS SMALLINT)), MEDIAN(CAST(age - 46000000000 AS INTEGER)) FROM people;

-- where no key passes its threshold, a chosen timestamp or a key with many public values ended in a traceback
SELECT zip, MIN(CAST(born AS TIMESTAMP)), MODE(sex) FROM people GROUP BY zip;
SELECT zip, age, COUNT(*) FROM people GROUP BY zip, age;
SELECT zip, born, smoker, COUNT(*) FROM people GROUP BY zip, born, smoker;

-- noise beyond 64 bits ended a correlation or a spread in a traceback, after the charge
SELECT sex, CORR(LENGTH(zip), income * income * income) FROM people GROUP BY sex;
SELECT STDDEV(income * income * income), COVAR_POP(income * income, income * income), AVG(income * income * income) FROM people;
SELECT SUM(income * income * income) / COUNT(*), VARIANCE(big * big) FROM people JOIN visits ON people.person_id = visits.person_id;

-- a chosen timestamp was looked up in a list of all moments of its range, seconds of a year: minutes, after the charge
SELECT MIN(seen), MAX(seen), QUANTILE_CONT(seen, [0.25, 0.5]) FROM visits;

-- margins of many groups, simulated with noise beyond 64 bits one draw after another: ten minutes, after the charge
SELECT state, age, VARIANCE(income * income * income * income) FROM people GROUP BY state, age;

-- an empty list after IN was handed to the engine
SELECT COUNT(*) FROM labs WHERE (('a' IN ()) IN ());
SELECT COUNT(*) FROM people WHERE age IN ();

-- a factor beyond 64 bits failed where all sums are zero, and nowhere else: a traceback that told whether anybody is there
SELECT AVG(COALESCE((r1.x0 * r1.x0 / r1.x0), (r1.x0 // 3))) a0 FROM (SELECT r3.person_id AS o, (CASE WHEN FALSE THEN r3.cost ELSE r3.cost END * r3.cost / SECOND(r3.seen)) AS x0, r3.clinic AS x1 FROM visits AS r3 UNION ALL SELECT r4.person_id AS o, (CASE WHEN ('Karrie Ames' = 'Karrie Ames') THEN 1 ELSE 0 END) AS x0, (CONCAT(r4.clinic, '-', r4.clinic) || (r4.clinic || r4.clinic)) AS x1 FROM visits AS r4) AS r1 HAVING COUNT(*) > 3;

-- margins of computed columns that pass what floating-point numbers hold: warnings of the arithmetic
SELECT POWER(COUNT(*), 1000), EXP(SUM(cost)) FROM visits;

-- anything computed from the number that a threshold tests ended in a traceback, after the charge, in sum budgets
SELECT zip, COUNT(*) * 2 AS twice, SUM(age) / COUNT(DISTINCT person_id) AS mean FROM people GROUP BY zip;

-- functions of functions of categories, each written out for every value of the one inside: seconds of the engine's planning
SELECT COUNT(*) FROM (SELECT DISTINCT person_id AS o, DAYNAME(day) AS x0, clinic AS x1, CONCAT(clinic, '-', clinic) AS x2 FROM visits WHERE note || clinic LIKE 'a%') AS t WHERE x1 IS DISTINCT FROM x0[1:1];

-- a JOIN without FROM, which the parser reads: a traceback
SELECT 1 JOIN LEFT JOIN ((labs));
SELECT COUNT(*) JOIN visits ON TRUE;

-- products of large noisy numbers beside a subquery or inside an aggregate: an engine error, after the charge
SELECT SUM(income * income * income * income) * (SELECT MAX(population) FROM states) FROM people;
SELECT SUM(a) * SUM(a) * SUM(a) FROM (SELECT sex, SUM(income * income * income * income) AS a FROM people GROUP BY sex) AS t;

-- an engine error where a column is NULL in all rows, of which the engine's optimizer knew: it told whether one person has a value
SELECT COUNT(*) FROM people WHERE SPLIT_PART(name, 'a', 1) = 'a';
SELECT COUNT(*) FROM people WHERE SPLIT_PART(CAST(born AS VARCHAR), '-', 1) <> 'a';

-- a constant among the keys of each person was taken for the place of a column
SELECT g, COUNT(*) FROM (SELECT person_id, STRPOS('', 'F') AS g, COUNT(*) AS n FROM visits GROUP BY person_id, STRPOS('', 'F')) AS t GROUP BY g;

-- groupings by a key and by a function of it that keeps its codes could not be added up: a traceback, after the charge
SELECT test, COUNT(*) FROM labs GROUP BY RPAD(test, 1, 'x'), ROLLUP (test);
SELECT COUNT(*) FROM people GROUP BY CUBE (sex, LOWER(sex));

-- guards: nothing was ever wrong with these, and each would show one planted bug
SELECT COUNT(*) FROM (SELECT a.person_id, a.n FROM (SELECT person_id, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY cost) AS n FROM visits) AS a JOIN visits AS b ON a.person_id = b.person_id) AS t WHERE n = 1;
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.cost > 0);
SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits);
SELECT COUNT(*) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.person_id = p.person_id AND v.cost > 2);
SELECT sex, COUNT(*) FROM people GROUP BY sex;
SELECT clinic, COUNT(*), SUM(cost), COUNT(DISTINCT person_id) FROM visits GROUP BY clinic;
SELECT SUM(age), AVG(income), VARIANCE(income) FROM people;
SELECT age, COUNT(*) FROM people GROUP BY age;
SELECT SUM(income) FROM people;
SELECT zip, COUNT(DISTINCT person_id) FROM (SELECT p.zip, v.person_id FROM people AS p JOIN visits AS v ON p.person_id = v.person_id) AS t GROUP BY zip;
SELECT SUM(age - 50), SUM(age - 2) FROM people;
SELECT SUM(x) FROM (SELECT age AS x FROM people UNION ALL SELECT age AS x FROM people) AS t;
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE visits.person_id = 50);
SELECT SUM(age) FROM people WHERE NOT EXISTS (SELECT 1 FROM visits WHERE visits.person_id = 50);
-- numbers beyond 38 digits are shown as floats: as decimals they ended in a traceback
SELECT MAX(POWER(46000000000, 8)), MODE(POWER(46000000000, 8)) FROM visits;
-- and a step beyond 64 bits is, also where the noisy sum is zero: the rehearsal ended in a traceback
SELECT SUM(POWER(46000000000, 8)) FROM visits;

-- an expression that fails on some keys, behind a filter that no made-up number passes: it failed after the charge
SELECT NOT CAST(value AS VARCHAR) AS k, COUNT(*) AS n FROM labs GROUP BY CAST(value AS VARCHAR) HAVING CORR(value, LENGTH(test)) > 0;
SELECT test > 5 AS k, n FROM (SELECT test, COUNT(*) AS n FROM labs GROUP BY test) AS t WHERE n BETWEEN 3 AND 5;

-- a default that does not fit into the column's type: an engine error wherever there was a row
SELECT SUM(w) FROM (SELECT LEAD(cost, 2, 1000000) OVER (PARTITION BY person_id, clinic ORDER BY cost) AS w FROM visits) AS t;
SELECT SUM(w) FROM (SELECT LAG(cost, 1, 100000000000) OVER (PARTITION BY person_id ORDER BY day) AS w FROM visits) AS t;

-- noise met what no made-up number did: failed after the charge
SELECT clinic, COALESCE(NULLIF(COUNT(*), 3), 'eleven') FROM visits GROUP BY clinic;
SELECT MAX(day) + INTERVAL 100 YEAR * COUNT(*) FROM visits;

-- DECIMAL(4, 2) held any number
SELECT SUM(TRY_CAST(cost AS DECIMAL(4, 2))), COUNT(TRY_CAST(cost AS DECIMAL(1, 1))) FROM visits;

-- a default of texts
SELECT w, COUNT(*) FROM (SELECT LAG(clinic, 1, 'none') OVER (PARTITION BY person_id ORDER BY cost) AS w FROM visits) AS t GROUP BY w;

-- a number beyond 64 bits as a text: an engine error wherever there was a row
SELECT COUNT(CAST(value + 4500000000000000000 AS VARCHAR)) AS n FROM labs;
SELECT CAST(age + 45000000000000000000 AS VARCHAR) AS k, COUNT(*) AS n FROM people GROUP BY k;

-- a column that is called as the engine's SQL calls its keys was grouped by instead of the key, and one row per key was read
SELECT v.k0 // 10 AS x, COUNT(*), SUM(age), MEDIAN(age) FROM people JOIN (VALUES (1), (2), (5), (9)) AS v(k0) ON v.k0 = CASE WHEN age > 37 THEN 2 ELSE 5 END GROUP BY x;
SELECT k0 // 1000 AS x, COUNT(*) FROM (SELECT age AS k0, person_id FROM people) AS t GROUP BY x;
SELECT LEFT(u0, 1) AS y, COUNT(DISTINCT person_id) FROM (SELECT zip AS u0, person_id FROM people) AS t GROUP BY y;
SELECT LEFT(u0, 1) AS y, SUM(age) FROM (SELECT zip AS u0, age FROM people) AS t GROUP BY y;

-- of two columns of one name in a table that is written out, the engine read the first, and the range was the second's
SELECT SUM(q) FROM (SELECT v.* FROM people JOIN (SELECT 1000000 AS a, 1 AS a) AS v ON age > 37) AS s(p, q);
SELECT SUM(q) FROM (SELECT v.* FROM people JOIN (VALUES (1000000, 1)) AS v(a, "A") ON age > 37) AS s(p, q);
SELECT q, COUNT(*) FROM (SELECT v.* FROM people JOIN (VALUES (1000, 1)) AS v(a, "A") ON age > 37) AS s(p, q) GROUP BY q;

-- two moments of a written-out table that differ by a nanosecond are one to the engine: a row met both, and was counted as meeting one
SELECT COUNT(*) FROM visits JOIN (SELECT CAST('2024-01-01 00:00:00.000000001' AS TIMESTAMP_NS) AS d UNION ALL SELECT CAST('2024-01-01 00:00:00.000000002' AS TIMESTAMP_NS) AS d UNION ALL SELECT CAST('2024-01-01 00:00:00.000000003' AS TIMESTAMP_NS) AS d) AS v ON CASE WHEN cost >= 0 THEN TIMESTAMP '2024-01-01' END = v.d;
SELECT v.d, COUNT(*) FROM people JOIN (SELECT CAST('12:00:00' AS TIME) AS d UNION ALL SELECT CAST('12:00:00.1' AS TIME) AS d) AS v ON people.age > 10 GROUP BY v.d;

-- a public float that the engine rounds up and its range down: everybody's number was a million times what one person was said to move
SELECT SUM(v.d * 1000000000000 + 1) FROM people JOIN (VALUES (0.0000005e0)) AS v(d) ON people.age >= 0;
SELECT v.d, COUNT(*) FROM people JOIN (VALUES (0.0000005e0), (-0.0000005e0)) AS v(d) ON people.age >= 0 GROUP BY 1;

-- a small public decimal of many digits failed in the engine wherever somebody met it
SELECT SUM(v.d) FROM people JOIN (SELECT CAST('0.00000000000000000001' AS DECIMAL(38, 30)) AS d) AS v ON people.age >= 0;
SELECT COUNT(*) FROM people JOIN (SELECT CAST('0.00000000000000000001' AS DECIMAL(38, 30)) AS d) AS v ON people.age = v.d;

-- what the parser reads and cannot write again, for the sentence of a refusal, was a traceback
SELECT ( ( ) ) FROM labs ( DISTINCT ( ( 0.5 // 0.5 ) ) , 0 );

-- days that are in no calendar of ours were a traceback
SELECT MAX(v.d) FROM people JOIN (SELECT CAST('infinity' AS DATE) AS d) AS v ON people.age > 10;
SELECT COUNT(*) FROM people JOIN (SELECT CAST('294247-01-10' AS TIMESTAMP) AS d) AS v ON people.age > 10;
SELECT MAX(v.d) FROM people JOIN (VALUES (DATE '0001-01-01 (BC)')) AS v(d) ON people.age > 10;

-- a column that USING names twice was a traceback
SELECT COUNT(*) FROM visits a RIGHT JOIN people b USING (person_id, person_id);
SELECT COUNT(*) FROM states JOIN people USING (state, STATE);

-- a factor that no number of the engine holds failed wherever there was a row: on huge numbers that are 0, and on quotients of two of them
SELECT SUM(age * 0 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 + age) FROM people;
SELECT COUNT(*) FROM people WHERE age * 0 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 = age;
SELECT SUM(GREATEST(age * 0 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18, age)) FROM people;
SELECT SUM(SQRT(age * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 * 1000000007 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009 / 1000000009)) FROM people WHERE name = 'Karrie';
SELECT SUM(SQRT(age / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18 / 1e18)) FROM people;
SELECT SUM(EXP(age * 0 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18 * 1e18)) FROM people;
SELECT SUM(CAST('0.00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001' AS DOUBLE) * age) FROM people;
SELECT CAST(1 + age / 1e18 / 100 AS VARCHAR) AS k, COUNT(*) FROM people GROUP BY 1;

-- a small decimal that is written with an exponent could not be read again, after the charge
SELECT SUM(v.x) FROM people JOIN (VALUES (CAST('0.0000001' AS DECIMAL(9, 9)))) AS v(x) ON age > 3;
SELECT COUNT(*) FROM people JOIN (VALUES (CAST('-170141183460469231731687303715884105727' AS HUGEINT))) AS v(x) ON age > 3;

-- the last moment of the calendar was a traceback, and nanoseconds in the answer one after the charge
SELECT s.x, COUNT(*) FROM people p JOIN (VALUES (1, CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)), (2, NULL)) AS s(l, x) ON p.age > s.l GROUP BY s.x ORDER BY 2;
SELECT CAST('2024-01-01 00:00:00.123456789' AS TIMESTAMP_NS) AS t, COUNT(*) FROM people;

-- a factor beyond 64 bits met numbers that were all zero: nothing was computed
SELECT clinic, COUNT(*), SUM(CLAMP(4500000000000000000, -0.25, 100) + 9223372036854775807) FROM visits GROUP BY 1;
SELECT POWER(SUM(GREATEST(4500000000000000000, 0.001)), 3) AS a, COUNT(*) % COUNT(DATE '2024-01-15') + 0 AS b FROM visits;

-- narrow cells of a fine grid lay in two wide ones, and their rows were read twice
SELECT b.clinic, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY (a.big % b.big)) FROM visits a JOIN visits b ON a.person_id = b.person_id GROUP BY b.clinic;

-- what max_groups keeps was not proved where keys were handed through two subqueries
SELECT GREATEST(r.v, r.w) AS k, COUNT(*) FROM (SELECT w, v FROM (SELECT person_id AS o, LAST_VALUE(1e3) OVER (PARTITION BY person_id ORDER BY cost ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS w, LN(big) AS v FROM visits) AS i WHERE i.w = 2) AS r GROUP BY GREATEST(r.v, r.w);
SELECT r.x AS k, COUNT(*) FROM (SELECT DISTINCT person_id AS o, TRY_CAST(big AS BIGINT) - 0.001 AS x, CAST(day AS TIMESTAMP) FROM visits) AS r GROUP BY 1;

-- a column that is called as ours are for margins was left out of them
SELECT SUM(age) AS "#margin a" FROM people;
SELECT x + 1 AS "#margin b", x AS b FROM (SELECT SUM(age) AS "#margin x", COUNT(*) AS x FROM people) AS t;

-- nobody can have a row, and planning divided by the rows that one person can have
SELECT CONCAT(r3.x, r3.x) AS k0, APPROX_COUNT_DISTINCT(r3.w) FROM (SELECT o, w, x FROM (SELECT person_id AS o, ROW_NUMBER() OVER (PARTITION BY person_id) AS w, clinic AS x FROM visits) AS r4 WHERE r4.w <= 0) AS r3 GROUP BY ALL;

-- all values of a table joined with all values of itself, to find the groups that can be: 44 seconds of planning
WITH c AS (SELECT person_id AS o, ((DATE_TRUNC('second', seen), LOG(2147483648, cost)) IN ((NULL, 4500000000000000000), (NULL, 3))) AS x, (big + 1e18) AS y FROM visits), d AS (SELECT * FROM c WHERE y > 0) SELECT r3.x AS k0, COUNT(r2.x) AS a0 FROM c AS r2 JOIN d AS r3 ON r2.o = r3.o GROUP BY r3.x;

-- trees deeper than Python recurses were an error where plans are compared and proved
SELECT COUNT(*) FROM people WHERE sex || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' || 'a' = 'b';
SELECT COUNT(*) + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 FROM people;
SELECT SUM(x) FROM (SELECT person_id, COUNT(DISTINCT clinic = 'Hill') AS x FROM visits GROUP BY 1) AS t WHERE NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT NOT (x > 1);

-- a constant of a subquery was no constant any more behind max_groups: the keys were not those that were ranked
SELECT COALESCE(r2.u0, r2.u1) a0, COUNT(DISTINCT CAST(CAST(TIMESTAMP '2024-06-01 12:30:00' AS DATE) AS VARCHAR)) FROM (SELECT r1.person_id o, r1.note u0, RIGHT('', 2) u1 FROM visits r1) r2 GROUP BY GROUPING SETS ((COALESCE(r2.u0, r2.u1)), ());

-- places of keys were multiplied in the narrow type of a column: where somebody is 120, the engine failed
SELECT r2.age AS k0, AVG(FLOOR(r2.income)) FROM visits AS r1 JOIN people AS r2 ON r1.person_id = r2.person_id GROUP BY r2.age, STARTS_WITH(r2.state, 'a');

-- an engine error that only rows with large values raise: days of a column were multiplied in the column's few bits
SELECT born + age * INTERVAL '7 week' AS d, COUNT(*) FROM people GROUP BY d;
SELECT DATE '2024-01-01' - INTERVAL (age * 99) DAY AS d, COUNT(*) FROM people GROUP BY d;

-- a key's EXISTS got the name of the table that is grouped: the proof refused the plan, as an error of ours
SELECT (SELECT COUNT(*) FROM visits AS v WHERE v.person_id = r1.person_id) > 0 AS k0, SUM(r1.age) FILTER (WHERE r1.person_id IN (SELECT r2.person_id FROM people AS r2 WHERE r2.age = 3)) AS a0 FROM people AS r1 GROUP BY ROLLUP (k0);

-- OVER behind brackets: the parser read it, what it wrote could not be read, and planning failed
SELECT r1.day AS k0, (COUNT(*)) OVER (PARTITION BY r1.cost >= 1 ORDER BY r1.day ROWS UNBOUNDED PRECEDING) AS a0 FROM visits AS r1 GROUP BY r1.day, r1.cost >= 1;

-- sixty columns that exclude each other: proved for seconds, by a time that grew with the cube of their number
SELECT SUM(cost) FILTER (WHERE big = 0), SUM(cost) FILTER (WHERE big = 1), SUM(cost) FILTER (WHERE big = 2), SUM(cost) FILTER (WHERE big = 3), SUM(cost) FILTER (WHERE big = 4), SUM(cost) FILTER (WHERE big = 5), SUM(cost) FILTER (WHERE big = 6), SUM(cost) FILTER (WHERE big = 7), SUM(cost) FILTER (WHERE big = 8), SUM(cost) FILTER (WHERE big = 9), SUM(cost) FILTER (WHERE big = 10), SUM(cost) FILTER (WHERE big = 11), SUM(cost) FILTER (WHERE big = 12), SUM(cost) FILTER (WHERE big = 13), SUM(cost) FILTER (WHERE big = 14), SUM(cost) FILTER (WHERE big = 15), SUM(cost) FILTER (WHERE big = 16), SUM(cost) FILTER (WHERE big = 17), SUM(cost) FILTER (WHERE big = 18), SUM(cost) FILTER (WHERE big = 19), SUM(cost) FILTER (WHERE big = 20), SUM(cost) FILTER (WHERE big = 21), SUM(cost) FILTER (WHERE big = 22), SUM(cost) FILTER (WHERE big = 23), SUM(cost) FILTER (WHERE big = 24), SUM(cost) FILTER (WHERE big = 25), SUM(cost) FILTER (WHERE big = 26), SUM(cost) FILTER (WHERE big = 27), SUM(cost) FILTER (WHERE big = 28), SUM(cost) FILTER (WHERE big = 29), SUM(cost) FILTER (WHERE big = 30), SUM(cost) FILTER (WHERE big = 31), SUM(cost) FILTER (WHERE big = 32), SUM(cost) FILTER (WHERE big = 33), SUM(cost) FILTER (WHERE big = 34), SUM(cost) FILTER (WHERE big = 35), SUM(cost) FILTER (WHERE big = 36), SUM(cost) FILTER (WHERE big = 37), SUM(cost) FILTER (WHERE big = 38), SUM(cost) FILTER (WHERE big = 39), SUM(cost) FILTER (WHERE big = 40), SUM(cost) FILTER (WHERE big = 41), SUM(cost) FILTER (WHERE big = 42), SUM(cost) FILTER (WHERE big = 43), SUM(cost) FILTER (WHERE big = 44), SUM(cost) FILTER (WHERE big = 45), SUM(cost) FILTER (WHERE big = 46), SUM(cost) FILTER (WHERE big = 47), SUM(cost) FILTER (WHERE big = 48), SUM(cost) FILTER (WHERE big = 49), SUM(cost) FILTER (WHERE big = 50), SUM(cost) FILTER (WHERE big = 51), SUM(cost) FILTER (WHERE big = 52), SUM(cost) FILTER (WHERE big = 53), SUM(cost) FILTER (WHERE big = 54), SUM(cost) FILTER (WHERE big = 55), SUM(cost) FILTER (WHERE big = 56), SUM(cost) FILTER (WHERE big = 57), SUM(cost) FILTER (WHERE big = 58), SUM(cost) FILTER (WHERE big = 59) FROM visits;

-- labels of all two million values of a key were written, of which a few could be: half a minute after the charge
WITH t AS (SELECT SAFE_DIVIDE(r1.value, r1.value) AS k0, COUNT(DISTINCT r1.visit_id) AS n FROM labs AS r1 GROUP BY k0) SELECT k0, SUM(n) OVER (ORDER BY k0) AS a0 FROM t;

-- the engine lost a condition: DuckDB 2.0 drops IS NULL where outer joins are nested, and counted nobody
SELECT AVG(LOG(0.5, 0.5)) FROM (SELECT r5.person_id o FROM (SELECT r2.person_id o FROM people r2 LEFT JOIN people r3 ON r2.person_id = r3.person_id WHERE r3.smoker IS NULL) r4 RIGHT JOIN people r5 ON r4.o = r5.person_id WHERE r4.o IS NULL) r6;

-- a family of grouping sets was priced with other statistics than it has: planning failed
SELECT COUNT_IF(r1.value >= 2) / COUNT(*) AS a1 FROM labs AS r1 WHERE r1.test LIKE '\%' GROUP BY GROUPING SETS (ROLLUP (CAST(0.001 AS VARCHAR)), ());

-- names that double the tables behind them, 2,048 in the end: planning took seconds and 400 MB
WITH a0 AS (SELECT person_id, age AS x FROM people), a1 AS (SELECT l.person_id, l.x FROM a0 l JOIN a0 r USING (person_id)), a2 AS (SELECT l.person_id, l.x FROM a1 l JOIN a1 r USING (person_id)), a3 AS (SELECT l.person_id, l.x FROM a2 l JOIN a2 r USING (person_id)), a4 AS (SELECT l.person_id, l.x FROM a3 l JOIN a3 r USING (person_id)), a5 AS (SELECT l.person_id, l.x FROM a4 l JOIN a4 r USING (person_id)), a6 AS (SELECT l.person_id, l.x FROM a5 l JOIN a5 r USING (person_id)), a7 AS (SELECT l.person_id, l.x FROM a6 l JOIN a6 r USING (person_id)), a8 AS (SELECT l.person_id, l.x FROM a7 l JOIN a7 r USING (person_id)), a9 AS (SELECT l.person_id, l.x FROM a8 l JOIN a8 r USING (person_id)), a10 AS (SELECT l.person_id, l.x FROM a9 l JOIN a9 r USING (person_id)), a11 AS (SELECT l.person_id, l.x FROM a10 l JOIN a10 r USING (person_id)) SELECT SUM(x) FROM a11;

-- sums of different values that exclude each other: all choices of all values were tried, 3^12 of them
SELECT SUM(CASE WHEN cost = 1 THEN CLAMP(cost + 1, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 2 THEN CLAMP(cost + 2, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 3 THEN CLAMP(cost + 3, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 4 THEN CLAMP(cost + 4, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 5 THEN CLAMP(cost + 5, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 6 THEN CLAMP(cost + 6, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 7 THEN CLAMP(cost + 7, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 8 THEN CLAMP(cost + 8, 0, 5) ELSE 0 END), SUM(CASE WHEN cost = 9 THEN CLAMP(cost + 9, 0, 5) ELSE 0 END), SUM(CASE WHEN cost > 9 THEN CLAMP(big, 0, 5) ELSE 0 END), SUM(CASE WHEN cost < 1 THEN CLAMP(cost * cost, 0, 5) ELSE 0 END) FROM visits;

-- one value in two ranges: an internal error
SELECT SUM(CASE WHEN cost = 1 THEN 1 END), SUM(CASE WHEN cost = 2 THEN 1 ELSE 0 END), COUNT(*) FROM visits;

-- a key by EXISTS among a person's first keys: the checker could not tell that what was ranked is what is grouped by
SELECT EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id AND p.smoker) AS e, cost, clinic, COUNT(*) FROM visits v GROUP BY 1, 2, 3;

SELECT CASE WHEN EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id AND p.smoker) THEN clinic ELSE note END AS e, COUNT(*) FROM (SELECT * FROM visits) v GROUP BY 1;

-- the noise was wider than 64 bits, and its margin failed after the charge
SELECT r1.level AS k0, AVG(SUM(4500000000000000000)) OVER () AS a0 FROM people AS r1 GROUP BY r1.level;
