-- Questions that must be refused. Above each stands what it tries, under it a part of the refusal.
-- policy: hospital

-- a semi join on something else than the owner
SELECT COUNT(*) FROM people SEMI JOIN visits ON people.age = visits.pain
--> would let one person's rows decide about other people's

-- a semi join on nothing
SELECT COUNT(*) FROM people SEMI JOIN visits
--> has no condition that is understood

-- an anti join on more than the owner's equality
SELECT COUNT(*) FROM people ANTI JOIN visits ON people.person_id < visits.person_id
--> does more with an identifier than compare it for equality

-- columns of what a semi join only tests for
SELECT AVG(cost) FROM people SEMI JOIN visits USING (person_id)
--> there is no column cost here

-- a count beside each row that is more than a test for one
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id AND v.pain > p.age) = 2
--> a subquery beside each row is not answered

-- a count of other people's rows as a test
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM people q WHERE q.age = p.age) > 0
--> EXISTS without an equality of owners

-- whether anybody at all was seen
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.cost > p.age) > 0
--> EXISTS without an equality of owners

-- owners of other rows, as a list
SELECT COUNT(*) FROM people WHERE age = ANY (SELECT pain FROM visits)
--> would let one person's rows decide about other people's

-- another collation
SELECT COUNT(*) FROM people WHERE sex COLLATE NOCASE = 'f'
--> texts are in the order of their letters' codes

-- the first people
SELECT TOP 5 zip FROM people
--> LIMIT on private rows

-- a tenth of the groups
SELECT TOP 10 PERCENT sex, COUNT(*) FROM people GROUP BY sex
--> Write LIMIT at the end instead of TOP

-- a date moved by a part of a day
SELECT COUNT(*) FROM visits WHERE day + cost > '2024-01-01'
--> moved by a whole number of days

-- a date moved too far by a column
SELECT DATE '2024-01-01' + income * 100, COUNT(*) FROM people GROUP BY 1
--> moves the date too far

-- one row of each, of people
SELECT DISTINCT ON (sex) sex, income FROM people ORDER BY sex, income DESC
--> ORDER BY on private rows

-- the richest and those who are as rich
SELECT sex, income FROM people ORDER BY income DESC FETCH FIRST 3 ROWS WITH TIES
--> ORDER BY on private rows

-- a list of people as JSON
SELECT JSON_AGG(income) FROM people
--> JSON_AGG(income) lists the values of people

-- rows of people as JSON
SELECT ROW_TO_JSON(p) FROM people p
--> Aggregate first: SELECT ROW_TO_JSON(t)

-- JSON of a name that is no constant
SELECT JSON_BUILD_OBJECT(sex, COUNT(*)) FROM people GROUP BY sex
--> needs a name before each value

-- the time of day
SELECT CAST(seen AS TIME) AS t, COUNT(*) FROM visits GROUP BY t
--> times of day are not answered

-- a window over people beside grouping sets
SELECT sex, SUM(income) OVER (PARTITION BY sex) FROM people GROUP BY ROLLUP (sex)
--> look at groups, and none is measured

-- a number in a format
SELECT TO_CHAR(SUM(income), 'FM999,999.00') FROM people
--> writes a number in a format

-- the rows themselves
SELECT * FROM people
--> rows never leave

-- some rows
SELECT age, income FROM people WHERE zip = 'a'
--> rows never leave

-- names
SELECT DISTINCT zip FROM people
--> DISTINCT across people tells which values exist

-- which people there are
SELECT DISTINCT person_id FROM people
--> rows never leave

-- identifiers as a key
SELECT person_id, COUNT(*) FROM visits GROUP BY person_id
--> rows never leave

-- identifiers of rows as a key
SELECT visit_id, COUNT(*) FROM visits GROUP BY visit_id
--> GROUP BY an identifier gives single rows, or a row for each person, and rows never leave

-- a sum of identifiers
SELECT SUM(person_id) FROM people
--> is not a number

-- the largest identifier
SELECT MAX(person_id) FROM people
--> needs numbers or dates

-- arithmetic on identifiers
SELECT COUNT(*) FROM people WHERE person_id + 1 > 5
--> is not a number

-- a range of identifiers
SELECT COUNT(*) FROM people WHERE person_id > 5
--> does more with an identifier than compare it for equality

-- letters of an identifier
SELECT COUNT(*) FROM people WHERE substr(person_id, 1, 1) = '1'
--> an identifier cannot be computed with

-- an identifier as text
SELECT COUNT(*) FROM people WHERE CAST(person_id AS VARCHAR) LIKE '1%'
--> an identifier cannot be computed with

-- the hidden owner by its name
SELECT COUNT("#owner") FROM people
--> there is no column "#owner" here

-- a hidden column of the noisy table
SELECT k0, a0 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t
--> there is no column k0 here

-- hidden margins
SELECT "#margin n" FROM (SELECT COUNT(*) AS n FROM people) AS t
--> there is no column "#margin n" here

-- an engine alias
SELECT COUNT(t1.age) FROM people
--> there is no column t1.age here

-- the store's own schema
SELECT COUNT(*) FROM public_tables.clinics
--> there is no schema public_tables

-- a table that is not there
SELECT COUNT(*) FROM payroll
--> there is no table payroll

-- a column that is not there
SELECT AVG(salary) FROM people
--> there is no column salary here

-- a column of both tables
SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id WHERE person_id = 3
--> could be several columns

-- LIMIT inside
SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 10) AS t
--> LIMIT on private rows would depend on other people's rows

-- ORDER BY inside
SELECT COUNT(*) FROM (SELECT * FROM people ORDER BY income) AS t
--> ORDER BY on private rows would depend on other people's rows

-- OFFSET inside
SELECT COUNT(*) FROM (SELECT * FROM people OFFSET 3) AS t
--> OFFSET on private rows would depend on other people's rows

-- LIMIT behind brackets
SELECT COUNT(*) FROM ((SELECT * FROM people) LIMIT 5) AS t
--> cannot stand here

-- LIMIT behind a union
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people LIMIT 5) AS t
--> UNION without ALL, or with an order, compares rows of different people

-- a sample of rows
SELECT COUNT(*) FROM people TABLESAMPLE 10%
--> a sample is other people's rows by chance, and which ones would not be repeatable

-- a sample of a query
SELECT COUNT(*) FROM people USING SAMPLE 3 ROWS
--> a sample is other people's rows by chance, and which ones would not be repeatable

-- distinct rows across people
SELECT COUNT(*) FROM (SELECT DISTINCT zip, age FROM people) AS t
--> DISTINCT across people

-- distinct on
SELECT COUNT(*) FROM (SELECT DISTINCT ON (person_id) cost FROM visits) AS t
--> DISTINCT ON is not answered

-- union that removes duplicates
SELECT COUNT(*) FROM (SELECT age FROM people UNION SELECT pain FROM visits) AS t
--> UNION without ALL, or with an order, compares rows of different people

-- intersection of rows
SELECT COUNT(*) FROM (SELECT age FROM people INTERSECT SELECT pain FROM visits) AS t
--> INTERSECT compares rows of different people

-- difference of rows
SELECT COUNT(*) FROM (SELECT age FROM people EXCEPT SELECT pain FROM visits) AS t
--> EXCEPT compares rows of different people

-- rows beside constants, to tell them apart
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT 1) AS t
--> UNION of private and other rows

-- owners that a noisy number is taken from
SELECT COUNT(*) FROM (SELECT person_id FROM visits EXCEPT SELECT COUNT(*) FROM people) AS t
--> EXCEPT of private and other rows

-- rows beside a public table
SELECT COUNT(*) FROM (SELECT clinic FROM visits UNION ALL SELECT clinic FROM clinics) AS t
--> UNION of private and other rows

-- rows beside a noisy number
SELECT COUNT(*) FROM (SELECT age FROM people UNION ALL SELECT COUNT(*) FROM people) AS t
--> UNION of private and other rows

-- a join on something else than the owner
SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age
--> private tables can be joined on the owner only

-- a join on an inequality of owners
SELECT COUNT(*) FROM people a JOIN people b ON a.person_id <> b.person_id
--> private tables can be joined on the owner only

-- an equality of owners hidden under OR
SELECT COUNT(*) FROM people a JOIN visits b ON a.person_id = b.person_id OR b.cost > 1
--> private tables can be joined on the owner only

-- an equality of owners hidden under NOT
SELECT COUNT(*) FROM people a JOIN visits b ON NOT (a.person_id <> b.person_id)
--> private tables can be joined on the owner only

-- an equality of owners hidden in a CASE
SELECT COUNT(*) FROM people a JOIN visits b ON CASE WHEN a.person_id = b.person_id THEN TRUE ELSE FALSE END
--> private tables can be joined on the owner only

-- an equality of an owner with itself
SELECT COUNT(*) FROM people a JOIN visits b ON a.person_id = a.person_id
--> private tables can be joined on the owner only

-- an owner compared with a computed one
SELECT COUNT(*) FROM people a JOIN visits b ON a.person_id = COALESCE(b.person_id, b.person_id)
--> identifier

-- a cross join of people
SELECT COUNT(*) FROM people a, people b
--> private tables can be joined on the owner only

-- a cross join in words
SELECT COUNT(*) FROM people a CROSS JOIN visits b
--> private tables can be joined on the owner only

-- a join USING another column
SELECT COUNT(*) FROM visits a JOIN visits b USING (clinic)
--> joins different people's rows

-- a natural join
SELECT COUNT(*) FROM people NATURAL JOIN visits
--> NATURAL JOIN is not answered

-- an asof join
SELECT COUNT(*) FROM visits a ASOF JOIN visits b ON a.person_id = b.person_id AND a.day >= b.day
--> ASOF JOIN is not answered

-- a positional join
SELECT COUNT(*) FROM people POSITIONAL JOIN visits
--> JOIN

-- a lateral join
SELECT COUNT(*) FROM people p, LATERAL (SELECT * FROM visits v WHERE v.person_id = p.person_id) AS w
--> LATERAL looks at each row by itself

-- a full join
SELECT COUNT(*) FROM people p FULL JOIN visits v ON p.person_id = v.person_id
--> FULL JOIN is not answered

-- public rows preserved: who is missing shows
SELECT COUNT(*) FROM clinics c LEFT JOIN visits v ON c.clinic = v.clinic
--> an outer join that keeps public rows

-- the same from the right
SELECT COUNT(*) FROM visits v RIGHT JOIN clinics c ON c.clinic = v.clinic
--> an outer join that keeps public rows

-- tests joined by something that is not their visit
SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.person_id = l.visit_id
--> l.visit_id leads to the owner through visits: join visits first, then ON visits.visit_id = l.visit_id

-- an owner that may be missing in a list
SELECT COUNT(*) FROM people p LEFT JOIN visits v USING (person_id) WHERE v.person_id NOT IN (SELECT person_id FROM people)
--> would let one person's rows decide about other people's

-- a list of owners that may be missing: one NULL would empty NOT IN for everybody
SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT v.person_id FROM people p LEFT JOIN visits v USING (person_id))
--> would let one person's rows decide about other people's

-- an owner that may be missing as a key: everybody's missing ones would be one group
SELECT COUNT(*) FROM (SELECT v.person_id, COUNT(*) AS n FROM people p LEFT JOIN visits v USING (person_id) GROUP BY v.person_id) AS s
--> or, within each person, by the owner and v.person_id in a subquery

-- a visit that may be missing as a key
SELECT AVG(n) FROM (SELECT v.visit_id, COUNT(*) AS n FROM people p LEFT JOIN visits v USING (person_id) GROUP BY v.visit_id) AS s
--> v.visit_id identifies people

-- a window over visits alone
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY visit_id ORDER BY day) AS n FROM visits) AS t WHERE n = 1
--> looks at other people's rows

-- a key that USING made one of, where it could be either
SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id JOIN labs l USING (visit_id)
--> USING (visit_id) could mean several columns

-- brackets around a join on something else
SELECT COUNT(*) FROM people p JOIN (visits v JOIN labs l ON v.pain = l.value) ON p.person_id = v.person_id
--> private tables can be joined on the owner only

-- brackets around a join that keeps public rows
SELECT COUNT(*) FROM people p JOIN (clinics c LEFT JOIN visits v USING (clinic)) ON p.person_id = v.person_id
--> an outer join that keeps public rows

-- a sample of what stands in brackets
SELECT COUNT(*) FROM people p JOIN (visits v JOIN labs l USING (visit_id)) TABLESAMPLE 10 PERCENT ON p.person_id = v.person_id
--> Write only the joins in brackets

-- brackets around public tables that are joined
SELECT c.town FROM clinics c JOIN (wards w JOIN clinics d USING (clinic)) ON c.clinic = w.clinic
--> Write the joins without them

-- brackets that hide a name
SELECT COUNT(*) FROM (people p JOIN visits v USING (person_id)) AS t WHERE p.age > 5
--> there is no column p.age here

-- owners by how often they are there
SELECT COUNT(*) FROM (SELECT person_id FROM visits EXCEPT ALL SELECT person_id FROM people) AS s
--> EXCEPT compares rows of different people

-- a union of people's values
SELECT COUNT(*) FROM (SELECT zip FROM people UNION SELECT note FROM visits) AS s
--> UNION without ALL

-- owners without those of other keys
SELECT COUNT(*) FROM (SELECT person_id FROM visits EXCEPT SELECT visit_id FROM visits) AS s
--> EXCEPT compares rows of different people

-- a subquery beside each public row
SELECT town, (SELECT COUNT(*) FROM visits v WHERE v.clinic = c.clinic) AS n FROM clinics c
--> Join instead: FROM clinics AS c JOIN (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic) AS s ON s.clinic = c.clinic

-- a list beside each row
SELECT COUNT(*) FROM people p WHERE person_id IN (SELECT v.person_id FROM visits v WHERE v.day > p.born)
--> Write EXISTS (SELECT 1 FROM t WHERE t.owner = p.owner AND ...), or a join

-- a name that the row outside does not have
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.cost > p.cost)
--> there is no column p.cost here

-- a subquery beside each public row, by a range
SELECT band, (SELECT COUNT(*) FROM people p WHERE p.age >= b.low) AS n FROM bands b
--> Join instead: SELECT b.x, COUNT(*) FROM people AS p JOIN bands AS b ON p.age >= b.low GROUP BY b.x

-- an uncorrelated EXISTS
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 900)
--> EXISTS without an equality of owners

-- EXISTS with the owner under OR
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id OR v.cost > 900)
--> EXISTS without an equality of owners

-- EXISTS on another column
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.zip = p.zip AND q.age > 100)
--> EXISTS without an equality of owners

-- EXISTS of an aggregate, which is always there
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id)
--> EXISTS is answered for a plain SELECT

-- IN on another column
SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people WHERE income > 100000)
--> would let one person's rows decide about other people's

-- NOT IN on another column
SELECT COUNT(*) FROM people WHERE zip NOT IN (SELECT note FROM visits)
--> would let one person's rows decide about other people's

-- owners among other identifiers
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT visit_id FROM visits)
--> would let one person's rows decide about other people's

-- IN with a noisy result
SELECT COUNT(*) FROM people WHERE age IN (SELECT COUNT(*) FROM visits)
--> IN (SELECT ...) is answered for owners

-- compared with everybody's mean
SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people)
--> this would compare each row with a number that depends on everybody

-- compared with one other person
SELECT COUNT(*) FROM people WHERE income > (SELECT income FROM people WHERE zip = 'a')
--> a subquery that returns rows of people cannot stand for a value

-- correlated with other people
SELECT COUNT(*) FROM people p WHERE income > (SELECT MAX(q.income) FROM people q WHERE q.zip = p.zip)
--> a subquery beside each row is not answered

-- a noisy result joined back to rows
SELECT COUNT(*) FROM people p JOIN (SELECT sex, AVG(age) AS mean FROM people GROUP BY sex) AS m ON p.age > m.mean
--> a noisy result cannot be joined back to private rows by p.age > m.mean

-- a noisy number that rows are to be equal to
SELECT COUNT(*) FROM people p JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS m ON p.age = m.n
--> a noisy result cannot be joined back to private rows by p.age = m.n

-- distinct values over groups that meet a noisy result
SELECT COUNT(DISTINCT p.age) FROM people p JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 1) AS m ON p.sex = m.sex
--> COUNT(DISTINCT p.age) cannot be added up over the groups of p.sex

-- a mixture of rows and a noisy number, in an aggregate
SELECT SUM(p.income - m.mean) FROM people p JOIN (SELECT sex, AVG(income) AS mean FROM people GROUP BY sex) AS m ON p.sex = m.sex
--> a noisy result cannot be joined back to private rows by p.income - m.mean

-- texts that few people share, in a group of all others
SELECT CASE WHEN t.zip IS NULL THEN 'other' ELSE p.zip END AS z, COUNT(*) FROM people p LEFT JOIN (SELECT zip, COUNT(*) AS n FROM people GROUP BY zip LIMIT 3) AS t ON p.zip = t.zip GROUP BY 1
--> of which only those that many people share are known

-- a window over everybody
SELECT AVG(r) FROM (SELECT RANK() OVER (ORDER BY income) AS r FROM people) AS t
--> looks at other people's rows

-- a window over a group of people
SELECT AVG(m) FROM (SELECT AVG(income) OVER (PARTITION BY zip) AS m FROM people) AS t
--> looks at other people's rows

-- a window in WHERE
SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) = 1
--> cannot stand here

-- a window inside an aggregate
SELECT SUM(ROW_NUMBER() OVER (PARTITION BY person_id)) FROM visits
--> cannot stand here

-- a window behind brackets, which no engine reads
SELECT day, (COUNT(*)) OVER (ORDER BY day) AS n FROM visits GROUP BY day
--> OVER stands behind a function, and (COUNT(*)) is none. Leave out the brackets around the function

-- a window inside a window
SELECT COUNT(*) FROM (SELECT LAG(ROW_NUMBER() OVER (PARTITION BY person_id)) OVER (PARTITION BY person_id) AS x FROM visits) AS t
--> cannot stand here

-- an aggregate of an aggregate
SELECT MAX(COUNT(*)) FROM people GROUP BY sex
--> is an aggregate of an aggregate

-- an aggregate in WHERE
SELECT COUNT(*) FROM people WHERE AVG(age) > 30
--> is an aggregate and stands where each row is looked at by itself

-- a column that is neither key nor aggregate
SELECT sex, age, COUNT(*) FROM people GROUP BY sex
--> is neither aggregated nor in GROUP BY

-- keys alone
SELECT zip FROM people GROUP BY zip
--> GROUP BY without an aggregate lists which groups exist

-- HAVING without an aggregate
SELECT age FROM people HAVING age > 3
--> HAVING on private rows

-- GROUP BY a place that is not there
SELECT sex, COUNT(*) FROM people GROUP BY 3
--> there is no column 3 in the SELECT list

-- GROUP BY place zero
SELECT sex, COUNT(*) FROM people GROUP BY 0
--> there is no column 0 in the SELECT list

-- ORDER BY a place that is not there
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 7
--> there is no column 7 in the SELECT list

-- distinct inside a sum: the remedy says that it is another number
SELECT SUM(DISTINCT income) FROM people
--> SUM(income) is another number: it takes the value of each row, as often as it is there

-- distinct inside a mean
SELECT sex, AVG(DISTINCT age) FROM people GROUP BY sex
--> DISTINCT is answered in COUNT only

-- distinct inside a minimum, which is the minimum
SELECT MIN(DISTINCT income) FROM people
--> Write MIN(income)

-- an ordered aggregate
SELECT SUM(income ORDER BY age) FROM people
--> the order of rows has no meaning here

-- names, listed
SELECT LIST(zip) FROM people
--> LIST(zip) lists the values of people

-- names, in one text
SELECT STRING_AGG(zip, ',') FROM people
--> STRING_AGG(zip, ',') lists the values of people

-- any one row
SELECT ANY_VALUE(zip) FROM people
--> ANY_VALUE(zip) shows what stands in one person's row

-- the first row
SELECT FIRST(income) FROM people
--> FIRST(income) shows what stands in one person's row

-- the richest person
SELECT ARG_MAX(zip, income) FROM people
--> ARG_MAX(zip, income) shows what stands in one person's row

-- the three largest
SELECT MAX(income, 3) FROM people
--> has a part that is not understood

-- two columns counted at once
SELECT COUNT(DISTINCT sex, age) FROM people
--> COUNT(DISTINCT a, b) counts several columns

-- a count of nothing
SELECT COUNT(NULL) FROM people
--> is zero for everybody

-- a sum of zeros
SELECT SUM(age * 0) FROM people
--> is zero for everybody

-- a sum of text
SELECT SUM(zip) FROM people
--> is not a number

-- a sum of dates
SELECT SUM(born) FROM people
--> is not a number

-- a mode without public values
SELECT MODE(zip) FROM people
--> MODE(zip) is one of the texts that people have, and those are not public

-- a median of text
SELECT MEDIAN(zip) FROM people
--> needs numbers or dates

-- a quantile beyond all
SELECT QUANTILE_CONT(age, 1.5) FROM people
--> needs numbers between 0 and 1

-- a quantile that depends on the row
SELECT QUANTILE_CONT(age, age / 120) FROM people
--> needs numbers between 0 and 1

-- a quantile of too many digits
SELECT QUANTILE_CONT(age, 1e999999999) FROM people
--> needs numbers between 0 and 1

-- quantiles in disorder
SELECT QUANTILE_CONT(age, [0.9, 0.1]) FROM people
--> several quantiles must increase

-- a regular expression
SELECT COUNT(*) FROM people WHERE zip ~ '^a+$'
--> regular expressions are not answered

-- another one
SELECT COUNT(*) FROM people WHERE regexp_matches(zip, '(a+)+$')
--> regular expressions are not answered

-- a third one
SELECT COUNT(*) FROM people WHERE zip SIMILAR TO 'a+'
--> regular expressions are not answered

-- a pattern from a column
SELECT COUNT(*) FROM visits WHERE note LIKE clinic
--> LIKE needs a constant pattern

-- random numbers
SELECT COUNT(*) FROM people WHERE random() < 0.5
--> random() would give another answer each time

-- the time
SELECT COUNT(*) FROM visits WHERE seen < now()
--> now() is known to the day, and an answer must be repeatable

-- a text without end
SELECT COUNT(*) FROM people WHERE repeat(zip, 1000000000) = 'a'
--> repeat(zip, 1000000000) is not understood on rows

-- an error on purpose
SELECT COUNT(*) FROM people WHERE error('x') = 1
--> is not a function that can be answered

-- a setting
SELECT COUNT(*) FROM people WHERE current_setting('threads') = '1'
--> is not a function that can be answered

-- a file
SELECT COUNT(*) FROM read_csv('/etc/passwd')
--> is not a table

-- a file by its name
SELECT COUNT(*) FROM 'people.parquet'
--> there is no table

-- the catalog
SELECT COUNT(*) FROM duckdb_tables()
--> is not a table

-- the catalog by another name
SELECT COUNT(*) FROM information_schema.views
--> there is no table information_schema.views

-- a table function
SELECT COUNT(*) FROM range(1000000000000)
--> is not a table

-- a list unnested
SELECT COUNT(*) FROM people, UNNEST([people.age, 2, 3]) AS u(x)
--> is not a table

-- a pivot
PIVOT people ON sex USING COUNT(*)
--> is not a question

-- a pivot in FROM
SELECT * FROM (SELECT sex, age FROM people) PIVOT (COUNT(*) FOR sex IN ('F', 'M'))
--> not understood

-- all columns, one replaced
SELECT COUNT(*) FROM (SELECT * REPLACE (1 AS age) FROM people) AS t
--> this form of * is not answered

-- columns by a pattern
SELECT SUM(COLUMNS('a.*')) FROM people
--> COLUMNS('a.*') is not understood on rows

-- a star among aggregates
SELECT *, COUNT(*) FROM people
--> rows never leave

-- a lambda
SELECT COUNT(*) FROM people WHERE list_sum(list_transform([age], x -> x + 1)) > 3
--> is not

-- a struct
SELECT COUNT({'a': age}) FROM people
--> {'a': age} is not understood on rows

-- a list of a column
SELECT COUNT([age, age]) FROM people
--> [age, age] is not understood on rows

-- recursion
WITH RECURSIVE t AS (SELECT age FROM people UNION ALL SELECT age + 1 FROM t) SELECT COUNT(*) FROM t
--> recursive queries are not answered

-- a subquery in the SELECT list that returns people
SELECT COUNT(*), (SELECT zip FROM people) FROM people
--> this subquery returns rows of people

-- a subquery of several rows as one value
SELECT COUNT(*) > (SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t) AS x FROM people
--> does not fit together

-- text plus a number, after noise
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING sex + 1 > 3
--> does not fit together

-- a number of digits out of all proportion
SELECT SUM(age * 123456789012345678901234567890123456789) FROM people
--> has too many digits

-- an exponent out of all proportion
SELECT COUNT(*) FROM people WHERE age < 1e400
--> has too many digits

-- a product too large to be added up
SELECT SUM(POWER(income, 8)) FROM people
--> can become too large to be added up exactly

-- division by zero, written out
SELECT SUM(age / 0) FROM people
--> division by zero

-- a power that is no power
SELECT SUM(POWER(age, age)) FROM people
--> POWER needs a constant exponent

-- a root that never is one
SELECT SUM(SQRT(-1 - age)) FROM people
--> is never defined

-- a reversed range
SELECT SUM(CLAMP(age, 10, 0)) FROM people
--> the range of CLAMP is reversed

-- a range that depends on the row
SELECT SUM(CLAMP(age, 0, balance)) FROM people
--> CLAMP needs two constants

-- a cast to an odd type
SELECT COUNT(*) FROM people WHERE age::INTERVAL IS NULL
--> CAST to

-- a cast to a list
SELECT COUNT(*) FROM people WHERE zip::INT[] IS NULL
--> CAST to

-- a date moved beyond the calendar
SELECT COUNT(*) FROM people WHERE born + 99999999 > '1990-01-01'
--> moves the date too far

-- a difference without a unit
SELECT AVG(seen - TIMESTAMP '2024-01-01') FROM visits
--> has no stated unit

-- a part that no date has
SELECT EXTRACT(millennium FROM born) AS x, COUNT(*) FROM people GROUP BY x
--> is not answered

-- text compared with a number
SELECT COUNT(*) FROM people WHERE zip > 5
--> mixes kinds of values

-- a name as a condition
SELECT COUNT(*) FROM people WHERE zip
--> is not a condition

-- a macro
CREATE MACRO f(x) AS x + 1
--> is not a question

-- a table
CREATE TABLE t AS SELECT * FROM people
--> is not a question

-- a change
UPDATE people SET age = 0
--> is not a question

-- a deletion
DELETE FROM people
--> is not a question

-- the end
DROP TABLE people
--> is not a question

-- a copy
COPY people TO 'out.csv'
--> is not a question

-- another database
ATTACH 'other.db' AS other
--> is not a question

-- an extension
INSTALL httpfs
--> is not a question

-- a pragma
PRAGMA database_size
--> is not a question

-- a setting to change
SET threads = 1
--> is not a question

-- the plan with its counts
EXPLAIN ANALYZE SELECT COUNT(*) FROM people
--> is not a question

-- a description
DESCRIBE SELECT COUNT(*) FROM people
--> ask it with LIMIT 0

-- a list of tables
SHOW DATABASES
--> is not a question

-- a summary of exact statistics
SUMMARIZE people
--> Ask for what you need: SELECT COUNT(*), AVG(x)

-- a call
CALL pragma_version()
--> is not a question

-- FROM first, all rows
FROM people
--> rows never leave

-- a parameter
SELECT COUNT(*) FROM people WHERE age > $1
--> $1 has no value here

-- a question mark
SELECT COUNT(*) FROM people WHERE age > ?
--> ? has no value here

-- two statements
SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM visits
--> one statement at a time

-- a statement behind a comment
SELECT COUNT(*) FROM people; -- DROP TABLE people
DROP TABLE people
--> one statement at a time

-- nothing
;
--> there is no question in this text

-- half a statement
SELECT COUNT( FROM people
--> not SQL that can be read

-- not SQL
How many people are there?
--> not SQL that can be read

-- JOINs without end
SELECT COUNT(*) FROM people JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits JOIN visits
--> many JOINs have no condition

-- quotes in a name
SELECT COUNT("age""; DROP TABLE people; --") FROM people
--> there is no column

-- two public tables before a private one
SELECT COUNT(*) FROM clinics c JOIN wards w ON c.clinic = w.clinic JOIN visits v ON v.clinic = c.clinic
--> two public tables are joined before a private one

-- public columns that do not fit
SELECT COUNT(*) FROM visits v JOIN (SELECT clinic, town + 1 AS x FROM clinics) AS c ON v.clinic = c.clinic
--> cannot be computed from the public tables

-- EXISTS on a public table
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM clinics)
--> EXISTS is answered for rows of people

-- grouping sets without end
SELECT COUNT(*) FROM visits GROUP BY CUBE (clinic, pain, month(day), day(day), note, cost, hour(seen))
--> CUBE of more than six columns is not answered

-- per person, ordered
SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id ORDER BY n LIMIT 3) AS t
--> GROUP BY the owner gives a row for each person, and people cannot be put in order or picked out

-- per person, a median
SELECT AVG(m) FROM (SELECT person_id, MEDIAN(cost) AS m FROM visits GROUP BY person_id) AS t
--> is not answered within each person

-- per person, a column that is not grouped
SELECT COUNT(*) FROM (SELECT person_id, clinic FROM visits GROUP BY person_id) AS t
--> is neither aggregated nor in GROUP BY

-- a join that shows whether there is anybody, the other way around
SELECT c.town, v.pain, COUNT(v.visit_id) FROM clinics c LEFT JOIN visits v ON v.clinic = c.clinic GROUP BY c.town, v.pain
--> Group by its columns alone

-- public rows that nobody matches, counted
SELECT c.town, COUNT(*) FROM clinics c LEFT JOIN visits v ON v.clinic = c.clinic GROUP BY c.town
--> Count a column of the private table: COUNT(v.visit_id)

-- public rows that nobody matches, summed
SELECT c.town, SUM(CASE WHEN v.pain > 0 THEN 1 ELSE 0 END) FROM visits v RIGHT JOIN clinics c ON v.clinic = c.clinic GROUP BY c.town
--> looks at those whom nobody matches

-- public rows of which each must pass a threshold
SELECT c.n, COUNT(v.visit_id) FROM (SELECT x.i * 1000 + y.i AS n FROM GENERATE_SERIES(1, 50) AS x(i), GENERATE_SERIES(1, 30) AS y(i)) AS c LEFT JOIN (SELECT visit_id, LENGTH(note) AS n FROM visits) AS v ON v.n = c.n WHERE v.visit_id IS NULL GROUP BY c.n
--> an outer join that keeps public rows shows whether anybody matches them

-- rank of everybody
SELECT NTILE(4) OVER (ORDER BY income) AS q, COUNT(*) FROM people GROUP BY q
--> group by them with CASE: SELECT QUANTILE_CONT(income, [0.25, 0.5, 0.75]) FROM people

-- the last visits of all
SELECT COUNT(*) FROM visits WHERE day >= (SELECT MAX(day) FROM visits)
--> a number that depends on everybody

-- a subquery beside each row
SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.clinic = p.zip) > p.age
--> Join it on the owner: FROM people p JOIN (SELECT person_id, COUNT(*) AS n

-- lateral
SELECT AVG(x.s) FROM people p JOIN LATERAL (SELECT SUM(cost) AS s FROM visits v WHERE v.person_id = p.person_id) x ON TRUE
--> LATERAL looks at each row by itself

-- the people who cost most
SELECT person_id, SUM(cost) FROM visits GROUP BY person_id ORDER BY 2 DESC LIMIT 10
--> people cannot be put in order or picked out

-- everybody's truth
SELECT BOOL_AND(smoker) FROM people
--> is decided by one person. Count them: COUNT(*) FILTER (WHERE smoker)

-- any one value
SELECT ANY_VALUE(income) FROM people
--> shows what stands in one person's row

-- the most frequent, approximately
SELECT APPROX_TOP_K(zip, 3) FROM people
--> GROUP BY x ORDER BY n DESC LIMIT 3

-- today
SELECT COUNT(*) FROM visits WHERE seen > CURRENT_TIMESTAMP - INTERVAL 18 HOUR
--> an answer must be repeatable

-- a format of another database
SELECT TO_CHAR(born, 'YYYY-J') AS m, COUNT(*) FROM people GROUP BY m
--> has a field that is not answered

-- a field of a format that is not known
SELECT strftime(born, '%Q') AS m, COUNT(*) FROM people GROUP BY m
--> has a field that is not answered

-- a format out of the data
SELECT strftime(born, zip) AS m, COUNT(*) FROM people GROUP BY m
--> STRFTIME needs a format written out

-- an interval out of the data
SELECT COUNT(*) FROM people WHERE born + INTERVAL (age) MONTH > '1990-01-01'
--> A date may be moved by a constant

-- out of the calendar
SELECT COUNT(*) FROM people WHERE born - INTERVAL 999999 MONTH > '1990-01-01'
--> moves the date too far

-- a pattern out of the data
SELECT COUNT(*) FROM people WHERE contains(zip, note) OR contains('abc', zip)
--> there is no column note here

-- a text to look for out of the data
SELECT COUNT(*) FROM people WHERE contains('abc', zip)
--> needs a text written out

-- a replacement that makes a text grow
SELECT COUNT(*) FROM people WHERE length(replace(zip, 'a', '0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345')) > 3
--> has a text of over 100 letters

-- the rows of VALUES, out of the data
SELECT COUNT(*) FROM (VALUES ((SELECT MAX(age) FROM people))) AS v(x)
--> is not a constant

-- rows of different lengths
SELECT COUNT(*) FROM people JOIN (VALUES (1, 2), (3)) AS v(x, y) ON age = x
--> the rows of VALUES differ in length

-- more names than columns
WITH t(a, b, c) AS (SELECT sex, age FROM people) SELECT COUNT(*) FROM t
--> 3 names are given for 2 columns

-- a public subquery of several rows as a value
SELECT COUNT(*) FROM people WHERE age > (SELECT low FROM bands)
--> needs one row and one column

-- an element that is not written out
SELECT QUANTILE_CONT(age, [0.25, 0.5])[COUNT(*)] FROM people
--> needs a place written out

-- the product of incomes
SELECT GEOMEAN(income) FROM people
--> is of numbers above 0 only

-- a harmonic mean of numbers on both sides of zero
SELECT HARMONIC_MEAN(balance) FROM people
--> is of numbers above 0 only

-- a geometric mean of two columns
SELECT GEOMEAN(age + 1, 2) FROM people
--> Write GEOMEAN(x)

-- a geometric mean of a mean
SELECT GEOMEAN(AVG(age)) FROM people
--> is an aggregate of an aggregate

-- a date that is not in the calendar
SELECT COUNT(*) FROM visits WHERE day > '2024-02-31'
--> is not a date

-- a word for a moment
SELECT COUNT(*) FROM visits WHERE seen > 'yesterday'
--> is not a timestamp

-- text read as moments
SELECT COUNT(*) FROM visits WHERE CAST(note AS TIMESTAMP) > '2024-01-02'
--> is not a timestamp

-- a date moved by ten thousand years
SELECT COUNT(*) FROM visits WHERE day + 9999999 > '2024-01-02'
--> moves the date too far

-- days after the last one
SELECT COUNT(*) FROM visits WHERE day < DATE '9999-12-01' + 60
--> leaves the calendar

-- a month after the last one
SELECT COUNT(*) FROM visits WHERE day < DATE '9999-12-31' + INTERVAL 1 MONTH
--> leaves the calendar

-- the year of a number
SELECT YEAR(age), COUNT(*) FROM people GROUP BY 1
--> needs a date

-- fortnights
SELECT DATE_TRUNC('fortnight', day) AS f, COUNT(*) FROM visits GROUP BY f
--> Truncate to day, week, month, quarter or year

-- decades between dates
SELECT AVG(DATE_DIFF('decade', born, DATE '2024-01-01')) FROM people
--> Units are: day, week

-- a part of a date that is none
SELECT DATE_PART('fortnight', day) AS f, COUNT(*) FROM visits GROUP BY f
--> Parts are: century

-- several values at once
SELECT COUNT(*) FROM people WHERE (age, sex) = (30, 'F', 1)
--> is several values

-- a number without its exponent
SELECT COUNT(*) FROM people WHERE age > 1e
--> is not a number that can be read

-- a number is a number
SELECT COUNT(*) FROM people WHERE age IS 5
--> IS goes with NULL, TRUE or FALSE

-- the first category
SELECT LEAST(sex, 'M') AS s, COUNT(*) FROM people GROUP BY s
--> LEAST of categories is not answered

-- digits that depend on the row
SELECT SUM(ROUND(income, age)) FROM people
--> ROUND needs a constant number of digits

-- very many digits
SELECT SUM(ROUND(income, 20)) FROM people
--> ROUND to more than 12 digits

-- a high power
SELECT SUM(POWER(age, 9)) FROM people
--> whole exponents from 1 to 8

-- a logarithm to base one
SELECT SUM(LOG(1, age)) FROM people
--> LOG needs a constant base

-- truncated to tenths
SELECT SUM(TRUNC(income, age)) FROM people
--> TRUNC needs a constant number of digits

-- a remainder by nothing
SELECT SUM(age % 0) FROM people
--> division by zero

-- too large for a float
SELECT SUM(EXP(age / 4)) FROM people
--> can become too large

-- a pattern on a number
SELECT COUNT(*) FROM people WHERE age LIKE '3%'
--> LIKE is for text

-- cents as text
SELECT CAST(income AS VARCHAR) AS i, COUNT(*) FROM people GROUP BY i
--> too many values to become text

-- other letters trimmed off
SELECT TRIM(zip, 'a') AS z, COUNT(*) FROM people GROUP BY z
--> TRIM of texts is answered for spaces only. Write TRIM(zip), or REPLACE(zip, 'a', '')

-- a part of a text that depends on the row
SELECT SUBSTR(zip, age) AS z, COUNT(*) FROM people GROUP BY z
--> needs a whole number written out

-- a part of a text backwards
SELECT SUBSTR(zip, 1, -1) AS z, COUNT(*) FROM people GROUP BY z
--> SUBSTR with a negative length

-- all but the first letters
SELECT RIGHT(zip, -1) AS z, COUNT(*) FROM people GROUP BY z
--> RIGHT with a negative length

-- a prefix from another column
SELECT COUNT(*) FROM people WHERE STARTS_WITH(zip, sex)
--> the prefix must be a constant

-- the word before the first
SELECT SPLIT_PART(note, ' ', 0) AS w, COUNT(*) FROM visits GROUP BY w
--> Write SPLIT_PART(name, ' ', 1)

-- where nothing stands
SELECT SUM(STRPOS(zip, '')) FROM people
--> an empty text is found everywhere

-- texts of five thousand letters
SELECT LPAD(zip, 5000, '*') AS z, COUNT(*) FROM people GROUP BY z
--> Write LPAD(code, 5, '0')

-- several columns counted within each person
SELECT SUM(n) FROM (SELECT person_id, COUNT(clinic, day) AS n FROM visits GROUP BY person_id) AS t
--> counts several columns at once

-- several columns counted
SELECT COUNT(age, sex) FROM people
--> counts several columns at once

-- pairs counted within each person
SELECT SUM(n) FROM (SELECT person_id, COUNT(DISTINCT clinic, day) AS n FROM visits GROUP BY person_id) AS t
--> counts several columns at once

-- different costs added up within each person
SELECT SUM(n) FROM (SELECT person_id, SUM(DISTINCT cost) AS n FROM visits GROUP BY person_id) AS t
--> Leave DISTINCT and ORDER BY out

-- the last clinic of the alphabet, of each person
SELECT COUNT(*) FROM (SELECT person_id, MAX(clinic) AS c FROM visits GROUP BY person_id) AS t WHERE c = 'Hill'
--> needs numbers or dates

-- the two costliest visits of each person
SELECT COUNT(*) FROM (SELECT person_id, ARG_MAX(cost, day, 2) AS c FROM visits GROUP BY person_id) AS t
--> lists several values

-- the cost at the last clinic of the alphabet
SELECT AVG(c) FROM (SELECT person_id, ARG_MAX(cost, clinic) AS c FROM visits GROUP BY person_id) AS t
--> needs a number or a date to order by

-- a constant as each person's key
SELECT COUNT(*) FROM (SELECT person_id, 1, COUNT(*) FROM visits GROUP BY person_id, 2) AS t
--> a constant key is the same for everybody

-- all columns of each person's groups
SELECT COUNT(*) FROM (SELECT * FROM visits GROUP BY person_id) AS t
--> * cannot be grouped

-- a key that is not grouped by
SELECT SUM(n) FROM (SELECT person_id, month(day) AS m, COUNT(*) AS n FROM visits GROUP BY person_id) AS t
--> neither aggregated nor in GROUP BY

-- windows of single visits
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id, visit_id) AS n FROM visits) AS t
--> a window cannot be partitioned by an identifier other than the owner

-- ranks by nothing
SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY person_id) AS n FROM visits) AS t WHERE n = 1
--> needs an ORDER BY

-- running ranks in percent, of each person
SELECT AVG(x) FROM (SELECT PERCENT_RANK() OVER (PARTITION BY person_id ORDER BY day) AS x FROM visits) AS t
--> Within each person: ROW_NUMBER, RANK

-- the last value of a frame that ends at the row itself
SELECT x, COUNT(*) FROM (SELECT LAST_VALUE(clinic) OVER (PARTITION BY person_id ORDER BY day) AS x FROM visits) AS t GROUP BY x
--> Write FIRST_VALUE with the opposite order

-- tiles as many as a column says
SELECT x, COUNT(*) FROM (SELECT NTILE(pain) OVER (PARTITION BY person_id ORDER BY day) AS x FROM visits) AS t GROUP BY x
--> needs a whole number

-- a window's frame
SELECT SUM(x) FROM (SELECT SUM(cost) OVER (PARTITION BY person_id ORDER BY cost RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS x FROM visits) AS t
--> Count rows: ROWS BETWEEN

-- a window's frame without some rows
SELECT SUM(x) FROM (SELECT SUM(cost) OVER (PARTITION BY person_id ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS x FROM visits) AS t
--> has a frame that is not answered

-- a frame of a row number
SELECT SUM(x) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day ROWS 2 PRECEDING) AS x FROM visits) AS t
--> has a frame. Leave it out

-- what stands before the first visit
SELECT AVG(cost - b) FROM (SELECT cost, LAG(cost, 1, pain) OVER (PARTITION BY person_id ORDER BY day) AS b FROM visits) AS t
--> has a default that is not a constant

-- the visit before
SELECT COUNT(DISTINCT x) FROM (SELECT LAG(visit_id) OVER (PARTITION BY person_id ORDER BY day) AS x FROM visits) AS t
--> an identifier cannot be computed with

-- USING a column of one side
SELECT COUNT(*) FROM people JOIN visits USING (person_id, cost)
--> cost is not a column of both sides

-- a public table without rows
SELECT COUNT(*) FROM visits AS v JOIN (SELECT * FROM clinics WHERE beds > 999) AS c ON v.clinic = c.clinic
--> matches no row of the public table

-- a column of the join that is not there
SELECT COUNT(*) FROM people p JOIN visits v ON p.nothing = v.person_id
--> there is no column p.nothing here

-- the number that is none, from a public table
SELECT COUNT(*) FROM visits v JOIN (SELECT clinic, CAST('nan' AS DOUBLE) AS f FROM clinics) c USING (clinic) WHERE f > 1
--> mixes kinds of values

-- an aggregate that there is not
SELECT REGR_SYY(balance, age) FROM people
--> is not an aggregate that can be answered

-- quantiles in words
SELECT QUANTILE_CONT(age, 'half') FROM people
--> needs numbers between 0 and 1

-- several quantiles, the last first
SELECT PERCENTILE_CONT([0.25, 0.5]) WITHIN GROUP (ORDER BY age DESC) FROM people
--> Leave DESC out

-- a mode, ordered the other way
SELECT MODE() WITHIN GROUP (ORDER BY sex DESC) FROM people
--> is not answered

-- any of a single number
SELECT COUNT(*) FROM people WHERE age = ANY (30)
--> compares with many values at once

-- the letters from the end
SELECT zip[2:1] AS z, COUNT(*) FROM people GROUP BY z
--> is not understood

-- a letter
SELECT zip[1] AS z, COUNT(*) FROM people GROUP BY z
--> is not understood

-- half of the groups
SELECT sex, COUNT(*) FROM people GROUP BY sex FETCH FIRST 50 PERCENT ROWS ONLY
--> without PERCENT or TIES

-- a format of a format
SELECT STRFTIME('%Y', '%m') AS y, COUNT(*) FROM visits GROUP BY y
--> is not a timestamp

-- a column of another schema
SELECT other.people.age, COUNT(*) FROM people GROUP BY 1
--> other.people.age

-- half a million letters after noise
SELECT LPAD(CAST(n AS VARCHAR), 500000, '0') AS p FROM (SELECT COUNT(*) AS n FROM people) AS t
--> to at most 1,000 letters

-- one row of each key, after noise
SELECT DISTINCT ON (sex) sex, COUNT(*) AS n FROM people GROUP BY sex, smoker
--> does not say which row comes first

-- the nearest result
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t ASOF JOIN (SELECT sex, AVG(age) AS m FROM people GROUP BY sex) AS u ON t.sex = u.sex AND t.n > u.m
--> ASOF JOIN is not answered

-- columns by a pattern
SELECT COLUMNS('n') FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t
--> is not answered on aggregated results

-- a list of different widths
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT COUNT(*) FROM visits
--> both sides of a UNION need the same number of columns

-- results matched by their names
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION BY NAME SELECT COUNT(*) AS n, 'x' AS k FROM visits
--> UNION BY NAME is not answered

-- a list in the order of something else
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT clinic, COUNT(*) FROM visits GROUP BY clinic ORDER BY age
--> there is no column age in this UNION

-- the most frequent income, to a cent
SELECT MODE(income) FROM people
--> at most 65536 public values

-- far too large for a float
SELECT SUM(EXP(age * 10)) FROM people
--> can become too large

-- a pattern in each person's groups
SELECT COUNT(*) FROM (SELECT person_id, REGEXP_MATCHES(note, 'a+') AS x FROM visits GROUP BY person_id, note) AS t WHERE x
--> regular expressions are not answered

-- an identifier among columns
SELECT COUNT(*) FROM people WHERE person_id IN ('a', zip)
--> does more with an identifier

-- a hundred grouping sets
SELECT sex, COUNT(*) FROM people GROUP BY CUBE (sex, smoker, diagnosis, age, born), CUBE (balance, zip)
--> grouping sets, and 64 are allowed

-- GROUPING of something else
SELECT sex, GROUPING(zip), COUNT(*) FROM people GROUP BY ROLLUP (sex)
--> is not one of the grouped columns

-- Monday: a name that does not end
SELECT `sex, COUNT(*) FROM people GROUP BY sex
--> this is not SQL that can be read

-- Monday: names as SQL Server writes them
SELECT [sex], COUNT(*) FROM [people] GROUP BY [sex]
--> not between [ and ]

-- Monday: cases as Oracle writes them
SELECT DECODE(sex, 'F', 'woman', 'M', 'man', 'other') AS s, COUNT(*) FROM people GROUP BY 1
--> Write CASE x WHEN

-- Monday: either but not both
SELECT COUNT(*) FROM people WHERE (age > 30) XOR smoker
--> Write a <> b

-- Monday: a pivot table
SELECT * FROM people PIVOT (COUNT(*) FOR sex IN ('F', 'M'))
--> PIVOT is not answered. Write one column each

-- Monday: the most frequent ones
SELECT APPROX_TOP_COUNT(diagnosis, 3) FROM people
--> ORDER BY n DESC LIMIT 3

-- Monday: rows from nothing
SELECT g, COUNT(*) FROM people JOIN generate_series(0, 100000) AS t(g) ON people.age // 10 = t.g GROUP BY g
--> generate_series(0, 100000) is not a table. Write its rows out: (VALUES (1), (2), (3)) AS t(n)

-- Monday: rows of a list
SELECT u, COUNT(*) FROM people, UNNEST([age, 2]) AS t(u) GROUP BY u
--> Write its rows out

-- Monday: a list of values, in Postgres's word
SELECT STRING_AGG(diagnosis, ', ') FROM people
--> STRING_AGG(diagnosis, ', ') lists the values of people

-- Monday: a list of values, in MySQL's word
SELECT GROUP_CONCAT(diagnosis) FROM people
--> GROUP_CONCAT(diagnosis) lists the values of people

-- Monday: a list of values, in DuckDB's word
SELECT LIST(LOWER(sex)) FROM people
--> LIST(LOWER(sex)) lists the values of people

-- Monday: the oldest's sex
SELECT MAX_BY(sex, age) FROM people
--> MAX_BY(sex, age) shows what stands in one person's row

-- Monday: everybody?
SELECT EVERY(smoker) FROM people
--> EVERY(smoker) is decided by one person

-- Monday: a quantile beside each row
SELECT PERCENTILE_CONT(age, 0.5) OVER () FROM people
--> looks at other people's rows

-- Monday: buckets from right to left
SELECT WIDTH_BUCKET(age, 120, 0, 6) AS b, COUNT(*) FROM people GROUP BY b
--> the smaller end first. Write WIDTH_BUCKET(age, 0, 100, 10)

-- buckets that depend on the row
SELECT WIDTH_BUCKET(age, 0, balance, 6) AS b, COUNT(*) FROM people GROUP BY b
--> needs two ends and a number of buckets, written out

-- buckets of noisy numbers
SELECT WIDTH_BUCKET(n, 0, 100, 5) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t
--> Write n // 20

-- Monday: quarters of an hour
SELECT TIME_BUCKET(INTERVAL '2 months', seen) AS t, COUNT(*) FROM visits GROUP BY t
--> needs a stride of seconds, minutes, hours, days or weeks

-- Monday: capitals
SELECT INITCAP(zip) AS z, COUNT(*) FROM people GROUP BY z
--> Write UPPER(LEFT(zip, 1)) || LOWER(SUBSTR(zip, 2))

-- Monday: months as BigQuery writes them
SELECT DATE_TRUNC(day, MONTH) AS m, COUNT(*) FROM visits GROUP BY m
--> A part of a date is written first, as a text: DATE_TRUNC('month', x)

-- Monday: the last of a month
SELECT EOMONTH(day) AS m, COUNT(*) FROM visits GROUP BY m
--> Write DATE_TRUNC('month', day)

-- Monday: three months later
SELECT COUNT(*) FROM visits WHERE day > ADD_MONTHS(DATE '2024-01-01', 3)
--> Write day + INTERVAL 3 MONTH

-- Monday: a cast the other way round
SELECT COUNT(*) FROM people WHERE CONVERT(INT, age) > 3
--> A type is written last: CAST(x AS INT)

-- Monday: double quotes around a text
SELECT COUNT(*) FROM visits WHERE clinic = "Hill"
--> Texts stand between single quotes: 'Hill'

-- Monday: older than any
SELECT COUNT(*) FROM people WHERE age > ANY (SELECT beds FROM clinics)
--> Write x > (SELECT MIN(y) FROM t) for ANY

-- Monday: a sum of squares, beside the line through the points
SELECT REGR_SXX(balance, age) FROM people
--> is not an aggregate that can be answered

-- Monday: a share, as Oracle writes it
SELECT sex, RATIO_TO_REPORT(COUNT(*)) OVER () FROM people GROUP BY sex
--> Write n / SUM(n) OVER ()

-- Monday: a sum with a condition
SELECT SUMIF(cost, clinic = 'Hill') FROM visits
--> Write SUM(x) FILTER (WHERE p)

-- Monday: with ties
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 2 WITH TIES
--> QUALIFY RANK() OVER (ORDER BY n DESC) <= 10

-- Monday: a window that is named and changed
SELECT SUM(n) OVER (w ROWS 1 PRECEDING) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t WINDOW w AS (ORDER BY n)
--> WINDOW is not answered

-- Monday: the mean of each pupil
SELECT person_id, AVG(cost) FROM visits GROUP BY person_id
--> a row for each person, and rows never leave. See how they are spread

-- Monday: counting rows of one side
SELECT COUNT(p.*) FROM people AS p
--> Write COUNT(*)

-- people and visits in one list, of different widths
SELECT COUNT(*) FROM (SELECT person_id, age FROM people UNION ALL SELECT person_id, cost, pain FROM visits) AS t
--> both sides of UNION ALL need the same columns

-- columns by their places
SELECT a, COUNT(*) FROM people AS p(i, a) GROUP BY a
--> names columns by their places

-- nothing at all, at its largest
SELECT MAX() FROM people
--> has a part that is not understood

-- an earlier version of the table
SELECT COUNT(*) FROM people AT (VERSION => 1)
--> has a part that is not understood (when)

-- totals as ClickHouse writes them
SELECT sex, COUNT(*) FROM people GROUP BY sex WITH TOTALS
--> GROUP BY TOTALS is not answered

-- gaps filled
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n WITH FILL
--> WITH FILL is not answered

-- an owner that is NULL for some
SELECT NULLIF(person_id, 3) AS k, COUNT(*) FROM people GROUP BY k
--> an identifier cannot be computed with

-- a list unfolded
SELECT COUNT(*) FROM people WHERE sex IN UNNEST(['F'])
--> this form of IN is not answered

-- seven joins of visits
SELECT COUNT(*) FROM visits a JOIN visits b USING (person_id) JOIN visits c USING (person_id) JOIN visits d USING (person_id) JOIN visits e USING (person_id) JOIN visits f USING (person_id) JOIN visits g USING (person_id) JOIN visits h USING (person_id) JOIN visits i USING (person_id) JOIN visits j USING (person_id) JOIN visits k USING (person_id) JOIN visits l USING (person_id) JOIN visits m USING (person_id)
--> this gives one person up to 1594323 rows, and 1000000 are allowed

-- a join of nothing
SELECT COUNT(*) JOIN visits ON TRUE
--> JOIN stands without FROM

-- columns of no table
SELECT *
--> Write FROM and a table: SELECT COUNT(*) FROM people

-- columns of no table, beside a constant and in a subquery
SELECT COUNT(*) FROM (SELECT 1 AS one, *) AS t
--> means the columns of a table, and there is no FROM

-- a public table that is computed and long
SELECT COUNT(*) FROM visits v JOIN (SELECT a.clinic FROM clinics a, clinics b, clinics c, clinics d, clinics e, clinics f, clinics g, clinics h) AS t ON v.clinic = t.clinic
--> a computed public table of 6561 rows is too long

-- a long list from a public table
SELECT COUNT(*) FROM people WHERE age IN (SELECT a.beds + 2 * b.beds + 7 * c.beds + 11 * d.beds + 13 * e.beds + 17 * f.beds + 19 * g.beds FROM clinics a, clinics b, clinics c, clinics d, clinics e, clinics f, clinics g)
--> this list has 1335 values

-- a constant among the keys of each person, in other words
SELECT COUNT(*) FROM (SELECT person_id, STRPOS('', 'F') AS g, COUNT(*) AS n FROM visits GROUP BY person_id, STRPOS('', 'F')) AS t
--> a constant key is the same for everybody

-- a comment by itself
/* SELECT COUNT(*) FROM people */
--> there is no question in this text

-- a question and a comment and a question
SELECT COUNT(*) FROM people; /* and */ SELECT COUNT(*) FROM visits
--> one statement at a time

-- a greeting
hello
--> hello is not a question in SQL. Write one, for example SELECT COUNT(*) FROM a_table

-- a statement of one word
CHECKPOINT
--> CHECKPOINT is not a question in SQL

-- a sum by itself
1 + 1
--> 1 + 1 is not a question in SQL

-- the word alone
SELECT
--> SELECT is followed by nothing

-- the word alone, in brackets
SELECT COUNT(*) FROM (SELECT) AS t
--> SELECT is followed by nothing

-- a lock
SELECT COUNT(*) FROM people FOR UPDATE
--> FOR UPDATE and the like lock rows

-- a parameter as MySQL and BigQuery write it
SELECT COUNT(*) FROM people WHERE sex = @wanted
--> @wanted has no value here: parameters are not answered

-- a parameter after noise
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > @least
--> @least has no value here

-- weeks from Sunday to Sunday
SELECT SUM(DATE_DIFF(born, DATE '1990-01-01', WEEK)) FROM people
--> weeks begin on other days. Write DATE_DIFF('day', earlier, later); 'week' counts how many weeks have passed

-- the Sunday before
SELECT DATE_TRUNC(born, WEEK) AS w, COUNT(*) FROM people GROUP BY w
--> Write DATE_TRUNC('week', day): the Monday before it

-- a difference of one date
SELECT SUM(DATEDIFF(born)) FROM people
--> DATEDIFF(born) has too few arguments, or too many. Write DATE_DIFF('day', earlier, later)

-- a part of nothing
SELECT DATE_TRUNC('month') AS m, COUNT(*) FROM people GROUP BY m
--> too few arguments

-- a difference in no unit
SELECT SUM(TIMESTAMPDIFF(FORTNIGHT, born, DATE '2024-12-31')) FROM people
--> begins with no unit of time that is answered

-- a difference of years of BigQuery's timestamps
SELECT SUM(TIMESTAMP_DIFF(seen, TIMESTAMP '2024-01-01', YEAR)) FROM visits
--> Write DATE_DIFF('month', earlier, later)

-- time that has passed, after noise
SELECT TIMESTAMPDIFF(DAY, m, DATE '2024-12-31') FROM (SELECT MEDIAN(born) AS m FROM people) AS t
--> TIMESTAMPDIFF is not a function that can be answered. Write DATE_DIFF('day', earlier, later)

-- seconds since 1970
SELECT SUM(EXTRACT(EPOCH FROM cost)) FROM visits
--> is answered for dates, timestamps and the time between two timestamps

-- seconds between dates
SELECT SUM(EPOCH(born - DATE '1990-01-01')) FROM people
--> is answered for dates, timestamps and the time between two timestamps

-- the last day of the month
SELECT seen AT TIME ZONE 'Europe/Paris' AS d, COUNT(*) FROM visits GROUP BY d
--> moments are in UTC here

-- the decade's first day
SELECT DATE_TRUNC('decade', born) AS d, COUNT(*) FROM people GROUP BY d
--> decades are FLOOR(EXTRACT(YEAR FROM x) / 10) * 10

-- a date in another order
SELECT COUNT(*) FROM people WHERE born > TO_DATE('31/01/1990', 'MM/DD/YYYY')
--> is not a date of that format

-- no such day
SELECT COUNT(*) FROM people WHERE born > DATE '1990-2-30'
--> is not a date

-- many years
SELECT COUNT(*) FROM people WHERE born + INTERVAL 1000000 YEAR > DATE '2000-01-01'
--> moves the date too far. Move it by less

-- a text of a billion letters
SELECT COUNT(*) FROM people WHERE LPAD(zip, 1000000000, 'x') = 'a'
--> 1000000000 is too large

-- a text of thousands of letters
SELECT COUNT(*) FROM people WHERE RPAD(zip, 5000, 'x') = 'a'
--> makes texts of over 1,000 letters

-- an escape of nothing
SELECT COUNT(*) FROM people WHERE zip LIKE 'a!' ESCAPE '!'
--> nothing follows the last !

-- an escape of nothing, after noise
SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING sex LIKE '%!!!' ESCAPE '!'
--> nothing follows the last !

-- a long escape
SELECT COUNT(*) FROM people WHERE zip LIKE 'a!!b' ESCAPE '!!'
--> needs a pattern and one sign, written out

-- a whole match of an expression
SELECT COUNT(*) FROM people WHERE regexp_full_match(zip, 'a+')
--> regular expressions are not answered

-- an identifier drawn by lot
SELECT COUNT(*) FROM people WHERE uuid() = zip
--> uuid() would give another answer each time

-- quantiles as BigQuery writes them
SELECT APPROX_QUANTILES(age, 4) FROM people
--> Write QUANTILE_CONT(x, [0.25, 0.5, 0.75])

-- a percentile in percent
SELECT PERCENTILE(age, 50) FROM people
--> Write QUANTILE_CONT(x, 0.5), with a number between 0 and 1

-- rows of each group, as ClickHouse writes it
SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY sex, smoker ORDER BY n DESC LIMIT 1 BY sex
--> LIMIT 1 BY sex has a part that is not answered

-- and further rows of each group
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1 OFFSET 1 BY sex
--> OFFSET 1 BY sex has a part that is not answered

-- groupings without repetition
SELECT sex, COUNT(*) FROM people GROUP BY DISTINCT ROLLUP (sex, sex)
--> GROUP BY DISTINCT is not answered

-- an order of search
WITH t AS (SELECT COUNT(*) AS n FROM people) SEARCH DEPTH FIRST BY n SET o SELECT n FROM t
--> has a part that is not answered

-- an order inside the function
SELECT SUM(cost) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER(ORDER BY cost DESC) OVER (PARTITION BY person_id) = 1) AS t
--> ROW_NUMBER(ORDER BY cost DESC) takes no argument

-- an order inside a rank
SELECT SUM(w) FROM (SELECT RANK(ORDER BY cost) OVER (PARTITION BY person_id ORDER BY day) AS w FROM visits) AS t
--> RANK(ORDER BY cost) takes no argument

-- a rank of something
SELECT SUM(w) FROM (SELECT DENSE_RANK(1, 2) OVER (PARTITION BY person_id ORDER BY day) AS w FROM visits) AS t
--> DENSE_RANK(1, 2) takes no argument

-- no tiles
SELECT SUM(w) FROM (SELECT NTILE(0) OVER (PARTITION BY person_id ORDER BY day) AS w FROM visits) AS t
--> needs a whole number, from 1 to 1,000,000

-- as many tiles as noise says
SELECT clinic, NTILE(CASE WHEN COUNT(*) > 50 THEN 0 ELSE 1 END) OVER (ORDER BY clinic) FROM visits GROUP BY clinic
--> needs a whole number, from 1

-- a frame as wide as noise says
SELECT clinic, SUM(COUNT(*)) OVER (ORDER BY clinic ROWS BETWEEN COUNT(*) PRECEDING AND CURRENT ROW) FROM visits GROUP BY clinic
--> a frame needs whole numbers written out

-- sums beyond what can be added up
SELECT SUM(CASE WHEN n > 20 THEN 99999999999999999999999999999999999999 ELSE 1 END) FROM (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic) AS t
--> has more than 18 digits

-- two columns of one name, of grouping sets
SELECT sex AS n, smoker, COUNT(*) AS n FROM people GROUP BY CUBE (sex, smoker)
--> two columns are called n

-- two columns of one name, in a subquery
SELECT * FROM (SELECT sex AS n, COUNT(*) AS N FROM people GROUP BY sex) AS t
--> two columns are called n

-- two columns of one name, with other names given to them
SELECT b FROM (SELECT sex AS n, COUNT(*) AS n FROM people GROUP BY sex) AS t(a, b)
--> two columns are called n

-- sums made to wrap: rows of people multiplied by tables that are written out
SELECT SUM(p.age) FROM people p CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS a(x) CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS b(x) CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS c(x) CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS d(x) CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS e(x) CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS f(x) CROSS JOIN (VALUES (1), (2)) AS g(x)
--> this gives one person up to 2000000 rows, and 1000000 are allowed

-- sums made to wrap: rows of people stacked
SELECT SUM(s.x) FROM (SELECT a.person_id, a.pain AS x FROM visits a JOIN visits b USING (person_id) JOIN visits c USING (person_id) JOIN visits d USING (person_id) JOIN visits e USING (person_id) JOIN visits f USING (person_id) JOIN visits g USING (person_id) JOIN visits h USING (person_id) JOIN visits i USING (person_id) JOIN visits j USING (person_id) JOIN visits k USING (person_id) JOIN visits l USING (person_id) UNION ALL SELECT a.person_id, a.pain AS x FROM visits a JOIN visits b USING (person_id) JOIN visits c USING (person_id) JOIN visits d USING (person_id) JOIN visits e USING (person_id) JOIN visits f USING (person_id) JOIN visits g USING (person_id) JOIN visits h USING (person_id) JOIN visits i USING (person_id) JOIN visits j USING (person_id) JOIN visits k USING (person_id) JOIN visits l USING (person_id)) AS s
--> this gives one person up to 1062882 rows, and 1000000 are allowed

-- work that exists for one person only
SELECT COUNT(*) FROM people p JOIN visits a USING (person_id) JOIN visits b USING (person_id) JOIN visits c USING (person_id) JOIN visits d USING (person_id) JOIN visits e USING (person_id) JOIN visits f USING (person_id) WHERE p.person_id = 7 AND LOWER(UPPER(LOWER(UPPER(p.zip || p.zip)))) LIKE '%a_b%'
--> one person alone could keep the engine busy for

-- names that double the tables behind them: the engine would plan for seconds, and take 400 MB
WITH a0 AS (SELECT person_id, age AS x FROM people), a1 AS (SELECT l.person_id, l.x FROM a0 l JOIN a0 r USING (person_id)), a2 AS (SELECT l.person_id, l.x FROM a1 l JOIN a1 r USING (person_id)), a3 AS (SELECT l.person_id, l.x FROM a2 l JOIN a2 r USING (person_id)), a4 AS (SELECT l.person_id, l.x FROM a3 l JOIN a3 r USING (person_id)), a5 AS (SELECT l.person_id, l.x FROM a4 l JOIN a4 r USING (person_id)), a6 AS (SELECT l.person_id, l.x FROM a5 l JOIN a5 r USING (person_id)), a7 AS (SELECT l.person_id, l.x FROM a6 l JOIN a6 r USING (person_id)), a8 AS (SELECT l.person_id, l.x FROM a7 l JOIN a7 r USING (person_id)), a9 AS (SELECT l.person_id, l.x FROM a8 l JOIN a8 r USING (person_id)), a10 AS (SELECT l.person_id, l.x FROM a9 l JOIN a9 r USING (person_id)), a11 AS (SELECT l.person_id, l.x FROM a10 l JOIN a10 r USING (person_id)) SELECT SUM(x) FROM a11
--> nests expressions too deeply

-- the same with UNION ALL
WITH a0 AS (SELECT person_id, age AS x FROM people), a1 AS (SELECT * FROM a0 UNION ALL SELECT * FROM a0), a2 AS (SELECT * FROM a1 UNION ALL SELECT * FROM a1), a3 AS (SELECT * FROM a2 UNION ALL SELECT * FROM a2), a4 AS (SELECT * FROM a3 UNION ALL SELECT * FROM a3), a5 AS (SELECT * FROM a4 UNION ALL SELECT * FROM a4), a6 AS (SELECT * FROM a5 UNION ALL SELECT * FROM a5), a7 AS (SELECT * FROM a6 UNION ALL SELECT * FROM a6), a8 AS (SELECT * FROM a7 UNION ALL SELECT * FROM a7), a9 AS (SELECT * FROM a8 UNION ALL SELECT * FROM a8), a10 AS (SELECT * FROM a9 UNION ALL SELECT * FROM a9), a11 AS (SELECT * FROM a10 UNION ALL SELECT * FROM a10) SELECT SUM(x) FROM a11
--> nests expressions too deeply

-- many subqueries of many tables each
WITH a0 AS (SELECT person_id, age AS x FROM people), a1 AS (SELECT l.person_id, l.x FROM a0 l JOIN a0 r USING (person_id)), a2 AS (SELECT l.person_id, l.x FROM a1 l JOIN a1 r USING (person_id)), a3 AS (SELECT l.person_id, l.x FROM a2 l JOIN a2 r USING (person_id)), a4 AS (SELECT l.person_id, l.x FROM a3 l JOIN a3 r USING (person_id)), a5 AS (SELECT l.person_id, l.x FROM a4 l JOIN a4 r USING (person_id)), a6 AS (SELECT l.person_id, l.x FROM a5 l JOIN a5 r USING (person_id)), a7 AS (SELECT l.person_id, l.x FROM a6 l JOIN a6 r USING (person_id)) SELECT (SELECT SUM(x + 0) FROM a7 WHERE x % 2 > 0), (SELECT SUM(x + 1) FROM a7 WHERE x % 3 > 0), (SELECT SUM(x + 2) FROM a7 WHERE x % 4 > 0), (SELECT SUM(x + 3) FROM a7 WHERE x % 5 > 0), (SELECT SUM(x + 4) FROM a7 WHERE x % 6 > 0), (SELECT SUM(x + 5) FROM a7 WHERE x % 7 > 0), (SELECT SUM(x + 6) FROM a7 WHERE x % 8 > 0), (SELECT SUM(x + 7) FROM a7 WHERE x % 9 > 0), (SELECT SUM(x + 8) FROM a7 WHERE x % 10 > 0), (SELECT SUM(x + 9) FROM a7 WHERE x % 11 > 0), (SELECT SUM(x + 10) FROM a7 WHERE x % 12 > 0), (SELECT SUM(x + 11) FROM a7 WHERE x % 13 > 0), (SELECT SUM(x + 12) FROM a7 WHERE x % 14 > 0), (SELECT SUM(x + 13) FROM a7 WHERE x % 15 > 0), (SELECT SUM(x + 14) FROM a7 WHERE x % 16 > 0), (SELECT SUM(x + 15) FROM a7 WHERE x % 17 > 0), (SELECT SUM(x + 16) FROM a7 WHERE x % 18 > 0), (SELECT SUM(x + 17) FROM a7 WHERE x % 19 > 0), (SELECT SUM(x + 18) FROM a7 WHERE x % 20 > 0), (SELECT SUM(x + 19) FROM a7 WHERE x % 21 > 0), (SELECT SUM(x + 20) FROM a7 WHERE x % 22 > 0), (SELECT SUM(x + 21) FROM a7 WHERE x % 23 > 0)
--> nests expressions too deeply

-- more sums than an engine plans in a moment
SELECT REGR_R2(age + 0, income), CORR(balance, age + 0), REGR_R2(age + 1, income), CORR(balance, age + 1), REGR_R2(age + 2, income), CORR(balance, age + 2), REGR_R2(age + 3, income), CORR(balance, age + 3), REGR_R2(age + 4, income), CORR(balance, age + 4), REGR_R2(age + 5, income), CORR(balance, age + 5), REGR_R2(age + 6, income), CORR(balance, age + 6), REGR_R2(age + 7, income), CORR(balance, age + 7), REGR_R2(age + 8, income), CORR(balance, age + 8), REGR_R2(age + 9, income), CORR(balance, age + 9), REGR_R2(age + 10, income), CORR(balance, age + 10), REGR_R2(age + 11, income), CORR(balance, age + 11), REGR_R2(age + 12, income), CORR(balance, age + 12), REGR_R2(age + 13, income), CORR(balance, age + 13), REGR_R2(age + 14, income), CORR(balance, age + 14), REGR_R2(age + 15, income), CORR(balance, age + 15), REGR_R2(age + 16, income), CORR(balance, age + 16), REGR_R2(age + 17, income), CORR(balance, age + 17), REGR_R2(age + 18, income), CORR(balance, age + 18), REGR_R2(age + 19, income), CORR(balance, age + 19), REGR_R2(age + 20, income), CORR(balance, age + 20), REGR_R2(age + 21, income), CORR(balance, age + 21), REGR_R2(age + 22, income), CORR(balance, age + 22), REGR_R2(age + 23, income), CORR(balance, age + 23), REGR_R2(age + 24, income), CORR(balance, age + 24), REGR_R2(age + 25, income), CORR(balance, age + 25), REGR_R2(age + 26, income), CORR(balance, age + 26), REGR_R2(age + 27, income), CORR(balance, age + 27), REGR_R2(age + 28, income), CORR(balance, age + 28), REGR_R2(age + 29, income), CORR(balance, age + 29), REGR_R2(age + 30, income), CORR(balance, age + 30), REGR_R2(age + 31, income), CORR(balance, age + 31), REGR_R2(age + 32, income), CORR(balance, age + 32), REGR_R2(age + 33, income), CORR(balance, age + 33), REGR_R2(age + 34, income), CORR(balance, age + 34), REGR_R2(age + 35, income), CORR(balance, age + 35), REGR_R2(age + 36, income), CORR(balance, age + 36), REGR_R2(age + 37, income), CORR(balance, age + 37), REGR_R2(age + 38, income), CORR(balance, age + 38), REGR_R2(age + 39, income), CORR(balance, age + 39), REGR_R2(age + 40, income), CORR(balance, age + 40), REGR_R2(age + 41, income), CORR(balance, age + 41), REGR_R2(age + 42, income), CORR(balance, age + 42), REGR_R2(age + 43, income), CORR(balance, age + 43), REGR_R2(age + 44, income), CORR(balance, age + 44), REGR_R2(age + 45, income), CORR(balance, age + 45), REGR_R2(age + 46, income), CORR(balance, age + 46), REGR_R2(age + 47, income), CORR(balance, age + 47), REGR_R2(age + 48, income), CORR(balance, age + 48), REGR_R2(age + 49, income), CORR(balance, age + 49), REGR_R2(age + 50, income), CORR(balance, age + 50), REGR_R2(age + 51, income), CORR(balance, age + 51), REGR_R2(age + 52, income), CORR(balance, age + 52), REGR_R2(age + 53, income), CORR(balance, age + 53), REGR_R2(age + 54, income), CORR(balance, age + 54), REGR_R2(age + 55, income), CORR(balance, age + 55), REGR_R2(age + 56, income), CORR(balance, age + 56), REGR_R2(age + 57, income), CORR(balance, age + 57), REGR_R2(age + 58, income), CORR(balance, age + 58), REGR_R2(age + 59, income), CORR(balance, age + 59) FROM people
--> sums, and 1,000 are allowed at once

-- no zone at all
SELECT EXTRACT(HOUR FROM seen AT TIME ZONE 'Nowhere/X') AS h, COUNT(*) FROM visits GROUP BY 1
--> No such zone is known here. Add its hours: seen + INTERVAL '1' HOUR

-- a zone whose summer is in January
SELECT EXTRACT(HOUR FROM seen AT TIME ZONE 'Australia/Sydney') AS h, COUNT(*) FROM visits GROUP BY 1
--> Shift by hours, without summer time: seen + INTERVAL '10' HOUR

-- a zone with summer time
SELECT EXTRACT(HOUR FROM seen AT TIME ZONE 'America/New_York') AS h, COUNT(*) FROM visits GROUP BY 1
--> Shift by hours, without summer time: seen - INTERVAL '5' HOUR

-- other people's rows beside each row, by a key that is not the owner
SELECT AVG((SELECT COUNT(*) FROM visits v WHERE v.clinic = p.zip)) FROM people p
--> Aggregate in a subquery first
