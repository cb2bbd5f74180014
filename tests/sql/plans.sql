-- The language, as pairs. Above each question stand its aggregate, its relation, its clause, and what it is in words;
-- under it each number that is measured, with its sensitivities l1, l2, linf: under add_remove | under change_one.
-- `rank` is how far a person moves the ranks of what is picked, `keys` how many unknown keys a person can touch.
-- `python -m tests.sql.matrix` prints which combinations there are; `--write` writes the sensitivities anew.

-- policy: hospital

-- ===== counts =====

-- count / one row / plain: How many people do we look after?
SELECT COUNT(*) FROM people;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / where: How many smokers are over 60?
SELECT COUNT(*) AS smokers FROM people WHERE smoker AND age > 60;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / where text: How many people live in the old town?
SELECT COUNT(*) FROM people WHERE zip LIKE 'A%' OR zip IN ('a', 'b');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / where escape: Who has a postcode with a _ in it, or a cold?
SELECT COUNT(*) FROM people WHERE zip || '_' LIKE 'a%!_' ESCAPE '!' OR diagnosis LIKE 'co!ld' ESCAPE '!';
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / group iso year: People by the year to which the week of their birth belongs
SELECT isoyear(born) AS year, COUNT(*) FROM people GROUP BY year;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / distinct within a person / group category: How many people have had each test?
SELECT test, COUNT(*) AS people FROM (SELECT DISTINCT v.person_id, l.test FROM visits v JOIN labs l USING (visit_id)) AS s
GROUP BY test;
--> COUNT(*): 3 3 3 | 6 √18 3

-- mean / first and last visit / plain: How much more do people's last visits cost than their first?
WITH v AS (SELECT person_id, cost, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS a,
ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day DESC) AS z FROM visits)
SELECT AVG(l.cost - f.cost) AS more FROM v f JOIN v l ON f.person_id = l.person_id AND l.z = 1 WHERE f.a = 1;
--> AVG(l.cost - f.cost): 200000 200000 200000 | 400000 √80000000000 200000

-- count / first two visits, outer / group category: Where people of each sex were on their first two visits, if they came
WITH v AS (SELECT person_id, clinic, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS a FROM visits)
SELECT p.sex, COUNT(*) AS n, COUNT(v.clinic) AS seen FROM people p LEFT JOIN v ON v.person_id = p.person_id AND v.a <= 2 GROUP BY p.sex;
--> COUNT(v.clinic), COUNT(*): 2 2 2 | 4 √8 2

-- sum / one row / pi: How far people went around, in circles as wide as their age
SELECT SUM(PI() * age) FROM people;
--> SUM(PI() * age): 120 120 120 | 120 120 120

-- mean / visits / seconds passed: How many hours after new year people were seen
SELECT AVG(EXTRACT(EPOCH FROM seen - TIMESTAMP '2024-01-01') / 3600) AS hours FROM visits;
--> AVG(EXTRACT(EPOCH FROM seen - CAST('2024-01-01' AS TIMEST...: 518400 518400 518400 | 1036800 √537477120000 518400

-- count / one row / group last day: Births by the last day of their month
SELECT LAST_DAY(born) AS month_end, COUNT(*) AS births FROM people GROUP BY month_end;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / visits / group quarter of an hour: When people are seen, by the quarter of an hour
SELECT TIME_BUCKET(INTERVAL '15 minutes', seen) AS quarter, COUNT(*) AS seen FROM visits GROUP BY quarter;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / visits / group epoch: When people are seen, by six hours since 1970
SELECT FLOOR(EXTRACT(EPOCH FROM seen) / 21600) * 21600 AS since, COUNT(*) AS seen FROM visits GROUP BY since;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum / visits / truncated: What was paid, without cents and tens
SELECT SUM(TRUNC(cost, -1)) AS paid FROM visits;
--> SUM(TRUNC(cost, -1)): 300 300 300 | 300 300 300

-- count / public join / list unnested: People of two sexes, which the question lists
SELECT s.sex, COUNT(*) AS people FROM people p JOIN UNNEST(['F', 'M']) AS s(sex) ON s.sex = p.sex GROUP BY s.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / visits / group day and category where: Visits of two days by clinic
SELECT CAST(seen AS DATE) AS d, clinic, COUNT(*) AS n FROM visits
WHERE seen >= '2024-01-02' AND seen < '2024-01-04' GROUP BY d, clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / semi join / plain: Who was seen at the harbor, by sex
SELECT sex, COUNT(*) AS people FROM people SEMI JOIN visits ON people.person_id = visits.person_id AND clinic = 'Harbor' GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / anti join / using: Who was never seen
SELECT COUNT(*) AS people FROM people ANTI JOIN visits USING (person_id);
--> COUNT(*): 1 1 1 | 1 1 1

-- sum / anti join of results / where: Visits of those who never came to the harbor, by clinic
SELECT v.clinic, SUM(v.cost) AS paid FROM visits v ANTI JOIN (SELECT person_id FROM visits WHERE clinic = 'Harbor') AS h ON v.person_id = h.person_id WHERE v.cost > 1 GROUP BY v.clinic;
--> SUM(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / counted EXISTS / plain: Who was seen at least once, and who never
SELECT COUNT(*) AS seen FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 0 AND (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id AND v.cost > 5) = 0;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / owner = ANY / plain: Who paid something
SELECT COUNT(*) FROM people WHERE person_id = ANY (SELECT person_id FROM visits WHERE cost > 1);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / owner <> ALL / plain: Who paid nothing
SELECT COUNT(*) FROM people WHERE person_id <> ALL (SELECT person_id FROM visits WHERE cost > 1);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / visits / group texts of a CASE: Visits with one of two notes, and all others
SELECT CASE WHEN note IN ('a', 'b') THEN note ELSE 'other' END AS note, COUNT(*) AS visits FROM visits GROUP BY 1;
--> COUNT(*): 3 3 3 | 6 √18 3

-- people / visits / group text of an IF: People with a note, and others
SELECT IF(note = 'a', note, clinic) AS note, COUNT(DISTINCT person_id) AS people FROM visits GROUP BY 1;
--> COUNT(DISTINCT person_id): 3 √3 1 | 4 2 1

-- count / one row / group moved by a column: Birthdays moved by as many days as years
SELECT DATE_TRUNC('month', born + CAST(age AS INTEGER)) AS month, COUNT(*) AS people FROM people GROUP BY month;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / visits / group moved back by a column: Days before the visit by pain, in two ways
SELECT EXTRACT(WEEK FROM day - INTERVAL (pain * 7) DAY) AS w, DATE '2024-01-01' + 2 * pain * INTERVAL '1 day' AS d, COUNT(*) AS n FROM visits GROUP BY 1, 2;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / visits / group text of a day: Visits by the day's text, in the first week
SELECT CAST(day AS VARCHAR) AS d, COUNT(*) AS visits FROM visits WHERE day < '2024-01-08' GROUP BY d;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / one row / group text of a month: Births by the text of their month
SELECT CAST(DATE_TRUNC('month', born) AS VARCHAR) AS month, COUNT(*) AS people FROM people GROUP BY month;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / visits / group five minutes: Visits by five minutes of their hour
SELECT DATE_TRUNC('hour', seen) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM seen) / 15) AS t, COUNT(*) AS n FROM visits GROUP BY t;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / one row / group made date: Births by the first of their month and of their year
SELECT MAKE_DATE(YEAR(born), MONTH(born), 1) AS m, MAKE_DATE(YEAR(born), 1, 1) AS y, COUNT(*) AS n FROM people GROUP BY m, y;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group end of month: Births by the last day of their month
SELECT DATE_TRUNC('month', born) + INTERVAL '1 month -1 day' AS last, COUNT(*) AS n FROM people GROUP BY last;
--> COUNT(*): 1 1 1 | 2 √2 1

-- mean / one row / of pairs: How many have an income and an age, and how old those with an income are
SELECT sex, REGR_COUNT(income, age) AS n, REGR_AVGX(income, age) AS years, REGR_AVGY(income, age) AS income FROM people GROUP BY sex;
--> COUNT(CASE WHEN NOT income IS NULL AND NOT age IS NULL TH...: 1 1 1 | 2 √2 1
--> AVG(CASE WHEN NOT income IS NULL THEN age END): 120 120 120 | 240 √28800 120
--> AVG(CASE WHEN NOT age IS NULL THEN income END): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- count / semi join of results / plain: The sexes that have smokers, with their numbers
SELECT t.sex, t.n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t SEMI JOIN (SELECT sex, COUNT(*) AS n FROM people WHERE smoker GROUP BY sex HAVING COUNT(*) > 0) AS u USING (sex);
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1

-- sum / DISTINCT ON owner / plain: What everybody paid last
SELECT SUM(cost) AS paid FROM (SELECT DISTINCT ON (person_id) person_id, cost FROM visits ORDER BY person_id, day DESC) AS s;
--> SUM(cost): 100000 100000 100000 | 100000 100000 100000

-- count / one row / series of days: Births in three months, from a series of days
SELECT s.m, b.n FROM generate_series(DATE '1990-01-01', DATE '1990-03-01', INTERVAL '1 month') AS s(m) LEFT JOIN (SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM people GROUP BY 1) AS b ON b.m = s.m;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / series: People by decade, from a series of numbers
SELECT g, COUNT(*) AS people FROM people JOIN generate_series(0, 12) AS t(g) ON people.age // 10 = t.g GROUP BY g;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / public join / calendar keeps days: Visits of each day, also of days on which nobody came
SELECT d.day, COUNT(v.visit_id) AS n FROM generate_series(DATE '2023-12-30', DATE '2024-01-04', INTERVAL '1 day') AS d(day) LEFT JOIN visits v ON v.day = d.day GROUP BY d.day ORDER BY d.day;
--> COUNT(v.visit_id): 3 3 3 | 6 √18 3

-- count / public join / calendar of moments: People seen on each day, by the moment
SELECT d.day, COUNT(DISTINCT v.person_id) AS n FROM generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL '1 day') AS d(day) LEFT JOIN visits v ON DATE_TRUNC('day', v.seen) = d.day GROUP BY d.day;
--> COUNT(DISTINCT v.person_id): 2 √2 1 | 2 √2 1

-- mean / public join / public rows kept: What visits cost in each town, also where nobody went
SELECT c.town, COUNT(v.visit_id) AS n, AVG(v.cost) AS mean FROM visits v RIGHT JOIN clinics c USING (clinic) GROUP BY town HAVING COUNT(v.visit_id) > 0 ORDER BY mean DESC;
--> COUNT(v.visit_id): 3 3 3 | 6 √18 3
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / public join / kept rows filtered: Smokers' visits, where the filter leaves no row of the calendar alone
SELECT c.town, COUNT(*) AS n FROM clinics c LEFT JOIN visits v ON v.clinic = c.clinic WHERE v.pain > 0 GROUP BY c.town;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / public join / kept rows in all: Visits to any clinic of the list
SELECT COUNT(v.visit_id) AS n FROM clinics c LEFT JOIN visits v ON v.clinic = c.clinic;
--> COUNT(v.visit_id): 3 3 3 | 3 3 3

-- count / owner IN / count of rows: People who came at least twice
SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id AND v.clinic = 'Hill') >= 2;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / EXISTS / count of few rows: People who came at most once
SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) <= 1;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / visits / where time of day: Visits in the morning
SELECT COUNT(*) AS n FROM visits WHERE CAST(seen AS TIME) BETWEEN '08:00' AND '11:59:59';
--> COUNT(*): 3 3 3 | 3 3 3

-- count / one row / where one of several patterns: Who lives where the code begins with a or b
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(zip, '^(a|b).*');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / visits / group text of an hour: When people are seen, by the hour as text
SELECT STRFTIME(seen, '%Y-%m-%d %H:00') AS hour, COUNT(*) AS n FROM visits WHERE seen >= '2024-01-01 06:00' AND seen < '2024-01-01 12:00' GROUP BY hour;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / one row / group trimmed letters: People by diagnosis, without some letters at its ends
SELECT TRIM(diagnosis, 'af') AS d, LTRIM(sex, 'F') AS s, COUNT(*) AS n FROM people GROUP BY d, s;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / where pattern: Who lives where the code begins with a
SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(zip, '^a');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / visits / group week from Sunday: Visits by the week, which begins on Sunday
SELECT CAST(day + (-EXTRACT(DOW FROM day) * INTERVAL '1 DAY') AS DATE) AS week, COUNT(*) AS n FROM visits GROUP BY week;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum / visits / order and limit, joined back: What the two busiest clinics cost by month
SELECT DATE_TRUNC('month', day) AS month, v.clinic, SUM(cost) AS cost FROM visits v
JOIN (SELECT clinic AS top, COUNT(*) AS n FROM visits GROUP BY clinic ORDER BY n DESC, top LIMIT 2) AS t
ON v.clinic = t.top GROUP BY 1, v.clinic;
--> COUNT(*): 3 3 3 | 6 √18 3
--> SUM(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- several / one row / joined back, each group alone: How much of its sex's people smoke, and how old those are
SELECT p.sex, COUNT(*) AS n, t.n AS all_n, AVG(p.age) AS mean FROM people p
JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t ON t.sex IS NOT DISTINCT FROM p.sex
WHERE p.smoker GROUP BY p.sex, t.n ORDER BY p.sex;
--> COUNT(*): 1 1 1 | 2 √2 1
--> AVG(p.age), COUNT(*): 120 120 120 | 240 √28800 120

-- several / visits / outer select, joined back: Visits to the busiest clinic, and to all others
SELECT CASE WHEN t.clinic IS NULL THEN 'other' ELSE v.clinic END AS c, COUNT(*) AS n, SUM(v.cost) AS s, AVG(v.cost) AS m FROM visits v
LEFT JOIN (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic ORDER BY n DESC, clinic LIMIT 1) AS t ON (v.clinic = t.clinic OR (v.clinic IS NULL AND t.clinic IS NULL))
GROUP BY 1;
--> COUNT(*): 3 3 3 | 6 √18 3
--> SUM(v.cost), COUNT(v.cost), COUNT(*): 300000 300000 300000 | 600000 √180000000000 300000

-- persons / one row / joined back, people added up: People of the two largest sexes
SELECT COUNT(DISTINCT p.person_id) AS people FROM people p
JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC, sex LIMIT 2) AS t ON t.sex = p.sex;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(DISTINCT p.person_id): 1 1 1 | 2 √2 1

-- count / visits / joined back, IN of noisy groups: Visits by the month to the two busiest clinics
SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits
WHERE clinic IN (SELECT clinic FROM visits GROUP BY clinic ORDER BY COUNT(*) DESC, clinic LIMIT 2) GROUP BY 1;
--> COUNT(*): 3 3 3 | 6 √18 3
--> COUNT(*): 3 3 3 | 6 √18 3

-- several / own rows beside each / plain: How often people go to Hill, by sex
SELECT p.sex, AVG((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id AND v.clinic = 'Hill')) AS n FROM people p GROUP BY p.sex;
--> AVG((COALESCE("own rows 1"."COUNT(*)", 0))): 3 3 3 | 6 √18 3

-- count / own rows beside each / where: Who came more often than their age has decades
SELECT COUNT(*) AS n FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > p.age / 10;
--> COUNT(*): 1 1 1 | 1 1 1

-- several / own rows beside each / group: How old those are whose dearest visit cost more than 500, and the others
SELECT (SELECT COALESCE(MAX(v.cost), 0) FROM visits v WHERE v.person_id = p.person_id) > 500 AS dear, COUNT(*) AS n, AVG(p.age) AS m FROM people p GROUP BY 1;
--> AVG(p.age), COUNT(*): 120 120 120 | 240 √28800 120

-- count / one row / possible, where: The old, by decade
SELECT age // 10 AS decade, COUNT(*) AS people FROM people WHERE age >= 80 GROUP BY decade;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / visits / possible, dates of one another: Visits by year, quarter and month
SELECT YEAR(day) AS year, QUARTER(day) AS quarter, MONTH(day) AS month, COUNT(*) AS visits FROM visits GROUP BY 1, 2, 3;
--> COUNT(*): 3 3 3 | 6 √18 3

-- persons / visits / possible, listed: Who was in two of the clinics
SELECT clinic, COUNT(DISTINCT person_id) AS people FROM visits WHERE clinic IN ('Hill', 'Market') GROUP BY clinic;
--> COUNT(DISTINCT person_id): 2 √2 1 | 2 √2 1

-- persons / visits / possible, subquery: Who came on which day of early March
SELECT d, COUNT(DISTINCT person_id) AS people FROM (SELECT day AS d, person_id FROM visits WHERE day < '2024-03-03'
AND day >= '2024-03-01') AS s GROUP BY d;
--> COUNT(DISTINCT person_id): 2 √2 1 | 2 √2 1

-- sum / visits / possible, public table: What was paid by town and clinic
SELECT c.town, c.clinic, SUM(v.cost) AS paid FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY c.town, c.clinic;
--> SUM(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / one row / possible, cases: Classes of the grown up
SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS class, COUNT(*) AS people
FROM people WHERE age > 20 GROUP BY class;
--> COUNT(*): 1 1 1 | 2 √2 1

-- mean / joined / possible, both sides: What the old pay outside of one clinic
SELECT p.age // 40 AS a, v.clinic, AVG(v.cost) AS paid FROM people p JOIN visits v ON p.person_id = v.person_id
WHERE p.age >= 60 AND v.clinic <> 'Hill' GROUP BY 1, 2;
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- median / visits / possible, where: Median costs in the first quarter, by month
SELECT MONTH(day) AS month, MEDIAN(cost) AS paid FROM visits WHERE day < '2024-04-01' GROUP BY month;
--> MEDIAN(cost): rank 3/2 | rank 3

-- count / one row / text listed: People in two places that the question lists
SELECT zip, COUNT(*) AS people FROM people WHERE zip IN ('a', 'b') GROUP BY zip;
--> COUNT(*): 1 1 1 | 2 √2 1

-- persons / visits / text listed, subquery: Who has one of two notes
SELECT n, COUNT(DISTINCT person_id) AS people FROM (SELECT note AS n, person_id FROM visits WHERE note IN ('a', 'b')) AS s
GROUP BY n;
--> COUNT(DISTINCT person_id): 2 √2 1 | 2 √2 1

-- count / visits / exclusive, months: Visits by month, each as a column
SELECT COUNT(*) FILTER (WHERE MONTH(day) = 1) AS january, COUNT(*) FILTER (WHERE MONTH(day) = 2) AS february,
COUNT(*) FILTER (WHERE MONTH(day) IN (3, 4, 5)) AS spring FROM visits;
--> COUNT(*) FILTER(WHERE MONTH(day) = 1), COUNT(*) FILTER(WHERE MONTH(day) = 2), COUNT(*) FILTER(WHERE MONTH(day) IN (3, 4, 5)): 3 3 3 | 6 √18 3

-- count / visits / exclusive, cases: Visits to each clinic as columns, by pain
SELECT pain > 0 AS pain, SUM(CASE WHEN clinic = 'Hill' THEN 1 ELSE 0 END) AS hill, SUM(CASE WHEN clinic = 'Harbor'
THEN 1 ELSE 0 END) AS harbor, COUNT(CASE WHEN clinic = 'Market' THEN 1 END) AS market FROM visits GROUP BY 1;
--> COUNT(CASE WHEN clinic = 'Market' THEN 1 END), SUM(CASE WHEN clinic = 'Harbor' THEN 1 ELSE 0 END), SUM(CASE WHEN clinic = 'Hill' THEN 1 ELSE 0 END): 3 3 3 | 6 √18 3

-- sum / visits / exclusive, ranges: What small, middling and large visits cost
SELECT SUM(cost) FILTER (WHERE cost < 10) AS small, SUM(cost) FILTER (WHERE cost >= 10 AND cost < 100) AS middling,
SUM(CASE WHEN cost >= 100 THEN cost ELSE 0 END) AS large FROM visits;
--> SUM(cost) FILTER(WHERE cost < 10), SUM(CASE WHEN cost >= 100 THEN cost ELSE 0 END), SUM(cost) FILTER(WHERE cost >= 10 AND cost < 100): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / visits / exclusive, with and without ELSE: One value in two ranges
SELECT SUM(CASE WHEN clinic = 'Hill' THEN 1 END) AS hill, SUM(CASE WHEN clinic = 'Market' THEN 1 ELSE 0 END) AS market
FROM visits;
--> SUM(CASE WHEN clinic = 'Hill' THEN 1 END), SUM(CASE WHEN clinic = 'Market' THEN 1 ELSE 0 END): 3 3 3 | 6 √18 3

-- count / one row / exclusive, opposite: Smokers, and those who do not smoke
SELECT COUNT(*) FILTER (WHERE smoker) AS smokers, COUNT(*) FILTER (WHERE NOT smoker) AS others FROM people;
--> COUNT(*) FILTER(WHERE NOT smoker), COUNT(*) FILTER(WHERE smoker): 1 1 1 | 2 √2 1

-- count / one row / exclusive, beside all: Smokers and all by sex: measured as smokers and others
SELECT sex, COUNT(*) FILTER (WHERE smoker) AS smokers, COUNT(*) AS n FROM people GROUP BY sex;
--> COUNT(*) FILTER(WHERE smoker), COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*) FILTER(WHERE smoker): – | 2 √2 1

-- count / visits / exclusive, beside all, some: Visits of two clinics and all
SELECT COUNT(*) AS n, SUM(CASE WHEN clinic = 'Hill' THEN 1 ELSE 0 END) AS hill,
COUNT(CASE WHEN clinic = 'Harbor' AND cost > 50 THEN 1 END) AS harbor FROM visits;
--> COUNT(CASE WHEN clinic = 'Harbor' AND cost > 50 THEN 1 END), SUM(CASE WHEN clinic = 'Hill' THEN 1 ELSE 0 END), COUNT(*): 3 3 3 | 3 3 3
--> COUNT(CASE WHEN clinic = 'Harbor' AND cost > 50 THEN 1 END), COUNT(*): – | 6 √18 3

-- count / visits / exclusive, beside all, many: Visits of four quarters and all, of which each would be the sum of five
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE QUARTER(day) = 1) AS q1, COUNT(*) FILTER (WHERE QUARTER(day) = 2) AS q2,
COUNT(*) FILTER (WHERE QUARTER(day) = 3) AS q3, COUNT(*) FILTER (WHERE QUARTER(day) = 4) AS q4 FROM visits;
--> COUNT(*): 3 3 3 | 3 3 3
--> COUNT(*) FILTER(WHERE QUARTER(day) = 1), COUNT(*) FILTER(WHERE QUARTER(day) = 2), COUNT(*) FILTER(WHERE QUARTER(day) = 3), COUNT(*) FILTER(WHERE QUARTER(day) = 4): 3 3 3 | 6 √18 3

-- count / visits / exclusive, missing: Visits with and without a pain that was asked
SELECT COUNT(*) FILTER (WHERE pain IS NULL) AS unasked, COUNT(*) FILTER (WHERE pain > 2) AS much,
COUNT(*) FILTER (WHERE pain <> 3 AND pain <= 2) AS little FROM visits;
--> COUNT(*) FILTER(WHERE pain > 2), COUNT(*) FILTER(WHERE pain <> 3 AND pain <= 2), COUNT(*) FILTER(WHERE pain IS NULL): 3 3 3 | 6 √18 3

-- count of x / visits / owners: COUNT(owner) counts all rows, beside a mean too
SELECT clinic, COUNT(person_id) AS n, AVG(cost) AS mean FROM visits GROUP BY clinic;
--> AVG(cost), COUNT(person_id): 300000 300000 300000 | 600000 √180000000000 300000

-- count / one row / exclusive, some: Young, old, and those between 17 and 70, of which many are in two
SELECT COUNT(*) FILTER (WHERE age < 18) AS young, COUNT(*) FILTER (WHERE age >= 18) AS old,
COUNT(*) FILTER (WHERE age BETWEEN 17 AND 70) AS middle FROM people;
--> COUNT(*) FILTER(WHERE age < 18), COUNT(*) FILTER(WHERE age >= 18): 1 1 1 | 2 √2 1
--> COUNT(*) FILTER(WHERE age BETWEEN 17 AND 70): 1 1 1 | 1 1 1

-- count / one row / where null: Whose diagnosis is unknown?
SELECT COUNT(*) FROM people WHERE diagnosis IS NULL AND NOT (income IS NULL);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / where date: Who was born in the spring of 1990?
SELECT COUNT(*) FROM people WHERE born BETWEEN '1990-03-01' AND DATE '1990-05-31';
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / filter: Children and grown-ups in one question
SELECT COUNT(*) FILTER (WHERE age < 18) AS children, COUNT(*) FILTER (WHERE age >= 18) AS adults FROM people;
--> COUNT(*) FILTER(WHERE age < 18), COUNT(*) FILTER(WHERE age >= 18): 1 1 1 | 2 √2 1

-- count / one row / filter, overlapping: Two counts of which many people are in both
SELECT COUNT(*) FILTER (WHERE age > 30) AS over_30, COUNT(*) FILTER (WHERE smoker) AS smokers FROM people;
--> COUNT(*) FILTER(WHERE age > 30): 1 1 1 | 1 1 1
--> COUNT(*) FILTER(WHERE smoker): 1 1 1 | 1 1 1

-- count / one row / group category: People by sex
SELECT sex, COUNT(*) AS people FROM people GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group nullable: People by diagnosis, those without one too
SELECT diagnosis, COUNT(*) FROM people GROUP BY diagnosis;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group boolean: Do they smoke?
SELECT smoker, COUNT(*) FROM people GROUP BY 1;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group number: The age pyramid
SELECT age, COUNT(*) AS people FROM people GROUP BY age ORDER BY age;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group bins: People by decade of life
SELECT age // 10 * 10 AS decade, COUNT(*) AS people FROM people GROUP BY decade ORDER BY decade;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group month: Births by month
SELECT date_trunc('month', born) AS month, COUNT(*) FROM people GROUP BY month;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group two keys: Diagnoses by sex
SELECT sex, diagnosis, COUNT(*) AS people FROM people GROUP BY sex, diagnosis;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group case: Age bands, in words
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS band, COUNT(*)
FROM people GROUP BY band;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group text: Where do our people live?
SELECT zip, COUNT(*) AS people FROM people GROUP BY zip;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group text and category: The sexes in each quarter
SELECT zip, sex, COUNT(*) AS people FROM people GROUP BY zip, sex;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / rollup: People by sex, and all of them
SELECT sex, COUNT(*) AS people FROM people GROUP BY ROLLUP (sex);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / cube: People by sex and smoking, every way
SELECT sex, smoker, COUNT(*) AS people FROM people GROUP BY CUBE (sex, smoker);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / grouping sets: Two tables in one
SELECT sex, smoker, GROUPING(sex) AS by_smoker, COUNT(*) AS people
FROM people GROUP BY GROUPING SETS ((sex), (smoker));
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / cube with NULL: Diagnosis, which may be missing, by sex, every way
SELECT diagnosis, sex, GROUPING(diagnosis, sex) AS level, COUNT(*) AS people FROM people GROUP BY CUBE (diagnosis, sex);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / rollup of an expression: Decades of age within smokers, and totals
SELECT smoker, age // 40 AS a, COUNT(*) AS people FROM people GROUP BY ROLLUP (smoker, age // 40) HAVING COUNT(*) > 1;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / cube of three: Everything by everything
SELECT sex, smoker, diagnosis, COUNT(*) AS people FROM people GROUP BY CUBE (sex, smoker, diagnosis);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / rollup, named as its column: People by sex, the total with a name of its own
SELECT CASE WHEN GROUPING(sex) = 1 THEN 'all' ELSE sex END AS sex, COUNT(*) AS people FROM people GROUP BY ROLLUP (sex) ORDER BY sex, GROUPING(sex);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / cube by positions and aliases: Smokers by decade, ordered by how many
SELECT age // 40 AS a, smoker, COUNT(*) AS people FROM people GROUP BY GROUPING SETS ((a), (a, 2), ()) ORDER BY people DESC, GROUPING(a, smoker);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / rollup of a key inside a key: Ages within odd and even ones, and totals
SELECT age % 2 AS odd, age, COUNT(*) AS people FROM people GROUP BY ROLLUP (age % 2, age) ORDER BY odd, age % 2 + 1, age;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / having on a key inside a key: Odd ages, each and together, and everybody
SELECT age, COUNT(*) AS people FROM people GROUP BY ROLLUP ((age % 2), age) HAVING COALESCE(age % 2, 1) = 1;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / grouping sets of a key inside a key: Births by month, and by day
SELECT date_trunc('month', born) AS m, born, COUNT(*) AS people FROM people GROUP BY GROUPING SETS ((m), (born));
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / grouping sets, in capitals and quotes: A name is one name however it is written
SELECT Sex, smoker, GROUPING("sex") AS level, COUNT(*) AS people FROM people GROUP BY GROUPING SETS ((sex), ("SEX", smoker), ());
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / rollup, named with its table: A column with its table's name and without
SELECT p.sex, smoker, GROUPING(sex) AS level, COUNT(*) AS people FROM people p GROUP BY ROLLUP (sex, p.smoker) HAVING p.sex <> 'X' ORDER BY p.sex, p.smoker;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / join owner / cube, named with and without tables: The sexes in the clinics, every way
SELECT sex, clinic, COUNT(*) AS visits FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY CUBE (p.sex, v.clinic) ORDER BY v.clinic, p.sex;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join owner / grouping sets of two columns of one name: People by sex, twice
SELECT a.sex AS one, b.sex AS other, COUNT(*) AS people FROM people a JOIN people b ON a.person_id = b.person_id GROUP BY GROUPING SETS ((a.sex), (b.sex));
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / grouping sets of an exists, with exists within filter: Who comes to us, of the smokers and of all
SELECT (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) > 0 AS comes, COUNT(*) FILTER (WHERE p.person_id IN (SELECT q.person_id FROM people q WHERE q.smoker)) AS smokers
FROM people p GROUP BY ROLLUP (comes);
--> COUNT(*) FILTER(WHERE p.person_id IN (SELECT q.person_id ...: 1 1 1 | 2 √2 1

-- persons / one row / rollup: Of people with one row each, counts are people
SELECT sex, COUNT(DISTINCT person_id) AS people FROM people GROUP BY ROLLUP (sex);
--> COUNT(DISTINCT person_id): 1 1 1 | 2 √2 1

-- persons / several rows / rollup: Patients of each clinic and of all, who are not the sum
SELECT clinic, COUNT(DISTINCT person_id) AS patients FROM visits GROUP BY ROLLUP (clinic);
--> COUNT(DISTINCT person_id): 3 √3 1 | 3 √3 1
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1

-- distinct values / one row / where in CASE: How many ages are there over sixty?
SELECT COUNT(DISTINCT CASE WHEN age > 60 THEN age END) FROM people;
--> COUNT(DISTINCT CASE WHEN age > 60 THEN age END): 1 1 1 | 1 1 1

-- distinct values / one row / rollup: Ages that occur
SELECT sex, COUNT(DISTINCT age) AS ages FROM people GROUP BY ROLLUP (sex);
--> COUNT(DISTINCT age): 1 1 1 | 2 √2 1
--> COUNT(DISTINCT age): 1 1 1 | 1 1 1

-- mean / one row / rollup: Mean age of each sex and of all
SELECT sex, AVG(age) AS mean, COUNT(*) AS people FROM people GROUP BY ROLLUP (sex);
--> AVG(age), COUNT(*): 120 120 120 | 240 √28800 120

-- deviation / one row / cube: How ages spread, every way
SELECT sex, smoker, STDDEV(age) AS spread FROM people GROUP BY CUBE (sex, smoker);
--> STDDEV(age): 14400 14400 14400 | 28800 √414720000 14400

-- correlation / one row / rollup: Age and balance, by smoking and at all
SELECT smoker, CORR(age, balance) AS r FROM people GROUP BY ROLLUP (smoker);
--> CORR(age, balance): 129600000000 129600000000 129600000000 | 259200000000 √33592320000000000000000 129600000000

-- median / one row / rollup: The median age of each sex, and of all
SELECT sex, MEDIAN(age) AS middle FROM people GROUP BY ROLLUP (sex);
--> MEDIAN(age): rank 1/2 | rank 1
--> MEDIAN(age): rank 1/2 | rank 1

-- sum, both signs / join owner / rollup: What patients owe by clinic, and at all
SELECT v.clinic, SUM(p.balance) AS owed FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY ROLLUP (v.clinic);
--> SUM(p.balance): 6000 6000 6000 | 12000 9000 9000

-- count / one row / share of all: Each diagnosis as a share of everybody
WITH d AS (SELECT diagnosis, COUNT(*) AS n FROM people GROUP BY diagnosis), t AS (SELECT COUNT(*) AS n FROM people)
SELECT d.diagnosis, d.n AS people, 1.0 * d.n / t.n AS share FROM d, t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / named window: Ranks over a window that has a name
SELECT diagnosis, COUNT(*) AS n, RANK() OVER w AS r, SUM(COUNT(*)) OVER w AS running FROM people GROUP BY diagnosis
WINDOW w AS (ORDER BY diagnosis);
--> COUNT(*): 1 1 1 | 2 √2 1

-- sum / join owner / using, either name: What a patient costs, by sex
SELECT p.sex, SUM(v.cost) / COUNT(DISTINCT v.person_id) AS each FROM people AS p JOIN visits AS v USING (person_id) GROUP BY p.sex;
--> SUM(v.cost): 300000 300000 300000 | 600000 √180000000000 300000
--> COUNT(DISTINCT v.person_id): 1 1 1 | 2 √2 1

-- count / one row / having: The common diagnoses
SELECT diagnosis, COUNT(*) AS people FROM people GROUP BY diagnosis HAVING COUNT(*) > 2;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / order and limit: The most common diagnosis
SELECT diagnosis, COUNT(*) AS people FROM people GROUP BY diagnosis ORDER BY people DESC, diagnosis LIMIT 1;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / ratio: The share of smokers
SELECT 100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS percent FROM people;
--> COUNT(*) FILTER(WHERE smoker), COUNT(*): 1 1 1 | 1 1 1
--> COUNT(*) FILTER(WHERE smoker): – | 1 1 1

-- count / one row / outer select: The larger sexes, from a subquery of counts
SELECT AVG(n) AS mean, MAX(n) AS largest FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / scalar subquery: Each sex beside everybody
SELECT sex, COUNT(*) AS n, (SELECT COUNT(*) FROM people) AS everybody FROM people GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / arithmetic outside: How much larger is the largest sex than the smallest?
SELECT MAX(n) - MIN(n) AS gap, ABS(-SUM(n)) + 1 AS one_more FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / two blocks joined: Smokers beside everybody, by sex
SELECT a.sex, a.n AS people, b.n AS smokers
FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS a
JOIN (SELECT sex, COUNT(*) AS n FROM people WHERE smoker GROUP BY sex) AS b ON a.sex = b.sex;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / union of results: Two numbers, one under the other
SELECT 'smokers' AS what, COUNT(*) AS n FROM people WHERE smoker
UNION ALL SELECT 'old', COUNT(*) FROM people WHERE age > 80;
--> COUNT(*): 1 1 1 | 1 1 1
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / window over groups: Diagnoses in the order of how common they are
SELECT diagnosis, COUNT(*) AS people, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY diagnosis;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / several rows / plain: How many visits were there?
SELECT COUNT(*) FROM visits;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / several rows / where date: Visits in the first quarter
SELECT COUNT(*) FROM visits WHERE day < '2024-04-01';
--> COUNT(*): 3 3 3 | 3 3 3

-- count / several rows / group category: Visits to each clinic
SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group month: Visits by month
SELECT EXTRACT(month FROM day) AS month, COUNT(*) AS visits FROM visits GROUP BY month ORDER BY month;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group weekday: Which days of the week are busy?
SELECT dayofweek(day) AS weekday, COUNT(*) FROM visits GROUP BY weekday;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group hour: When do people come?
SELECT date_trunc('hour', seen) AS hour, COUNT(*) FROM visits WHERE seen IS NOT NULL GROUP BY hour;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group text: What do the doctors write?
SELECT note, COUNT(*) AS visits FROM visits GROUP BY note;
--> keys: 3 | 6
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group text and category: Notes at each clinic
SELECT note, clinic, COUNT(*) AS visits FROM visits GROUP BY note, clinic;
--> keys: 3 | 6
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / group computed text: First letters of the notes
SELECT lower(left(note, 1)) AS letter, COUNT(*) AS visits FROM visits GROUP BY letter;
--> keys: 3 | 6
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / rollup: Visits by clinic and month, with all totals
SELECT clinic, month(day) AS month, COUNT(*) AS visits FROM visits GROUP BY ROLLUP (clinic, month);
--> COUNT(*): 3 3 3 | 6 √18 3
--> COUNT(*): 3 3 3 | 6 √18 3
--> COUNT(*): – | 3 3 3

-- count / owned through / plain: How many laboratory tests?
SELECT COUNT(*) FROM labs;
--> COUNT(*): 4 4 4 | 4 4 4

-- count / owned through / group category: Which tests?
SELECT test, COUNT(*) AS tests FROM labs GROUP BY test;
--> COUNT(*): 4 4 4 | 8 √32 4

-- count / owned through / where: High values, or tests on an empty stomach
SELECT COUNT(*) FROM labs WHERE value > 200 OR fasting;
--> COUNT(*): 4 4 4 | 4 4 4

-- count / owned through / group nullable: Was the patient fasting?
SELECT fasting, COUNT(*) FROM labs GROUP BY fasting;
--> COUNT(*): 4 4 4 | 8 √32 4

-- count / join on owner / plain: Visits by people whom we know
SELECT COUNT(*) FROM people AS p JOIN visits AS v ON p.person_id = v.person_id;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / join on owner / where: Visits of smokers
SELECT COUNT(*) FROM visits AS v JOIN people AS p ON v.person_id = p.person_id WHERE p.smoker;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / join on owner / group category: Visits by the patient's sex
SELECT p.sex, COUNT(*) AS visits FROM visits AS v JOIN people AS p ON v.person_id = p.person_id GROUP BY p.sex;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join on owner / group two keys: Who goes where?
SELECT p.sex, v.clinic, COUNT(*) AS visits
FROM visits AS v JOIN people AS p ON v.person_id = p.person_id GROUP BY p.sex, v.clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join on owner / group text: Visits by where people live
SELECT p.zip, COUNT(*) AS visits FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.zip;
--> keys: 1 | 2
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / using owner / plain: The same, shorter
SELECT COUNT(*) FROM people JOIN visits USING (person_id);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / using owner / group bins: Visits by age
SELECT age // 20 AS bin, COUNT(*) FROM people JOIN visits USING (person_id) GROUP BY bin;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / owner in where / plain: The old way to write a join
SELECT COUNT(*) FROM people p, visits v WHERE p.person_id = v.person_id AND v.cost > 100;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / left join on owner / plain: People with their visits, and those without any
SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / left join on owner / where null: People who never came
SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id WHERE v.clinic IS NULL;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / left join on owner / group nullable: Clinics that people go to, or none
SELECT v.clinic, COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id GROUP BY v.clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / right join on owner / group category: The same from the other side
SELECT p.sex, COUNT(*) FROM visits v RIGHT JOIN people p ON p.person_id = v.person_id AND v.cost > 100 GROUP BY p.sex;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / left join using owner / where null: People who never came, by the other side's key
SELECT COUNT(*) FROM people p LEFT JOIN visits v USING (person_id) WHERE v.person_id IS NULL;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / anti-join on owner / group category: Who was never at a dear visit, by sex
SELECT p.sex, COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id AND v.cost > 100
WHERE p.age > 30 AND v.person_id IS NULL GROUP BY p.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / anti-join from the right / where: People over 30 who never came, kept by a RIGHT JOIN
SELECT COUNT(*) FROM visits v RIGHT JOIN people p ON p.person_id = v.person_id WHERE v.person_id IS NULL AND p.age > 30;
--> COUNT(*): 1 1 1 | 1 1 1

-- sum / anti-join using owner from the right / plain: Income of people who never came
SELECT SUM(income) FROM visits RIGHT JOIN people USING (person_id) WHERE visits.person_id IS NULL;
--> SUM(income): 20000000 20000000 20000000 | 20000000 20000000 20000000

-- count / anti-join of a subquery / group category: Who had no dear visit, by sex
SELECT p.sex, COUNT(*) FROM people p LEFT JOIN (SELECT person_id, cost FROM visits WHERE cost > 100) AS v
ON p.person_id = v.person_id WHERE v.person_id IS NULL GROUP BY p.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- mean / anti-join of a name / plain: How old those are who had no dear visit
WITH dear AS (SELECT person_id AS patient, cost FROM visits WHERE cost > 100)
SELECT AVG(p.age) FROM people p LEFT JOIN dear d ON p.person_id = d.patient WHERE d.patient IS NULL;
--> AVG(p.age): 120 120 120 | 240 √28800 120

-- count / join that filters / distinct persons: People of each sex who had a dear visit
SELECT t.sex, COUNT(*) FROM (SELECT DISTINCT p.person_id, p.sex FROM people p JOIN visits v ON p.person_id = v.person_id
WHERE v.cost > 100) AS t GROUP BY t.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- distinct values / join that filters / where both: Ages at which people had a dear visit
SELECT COUNT(DISTINCT p.age) FROM people p JOIN visits v USING (person_id) WHERE v.cost > 100 AND p.smoker;
--> COUNT(DISTINCT p.age): 1 1 1 | 1 1 1

-- distinct values / join that filters / group category: Ages of people who had a visit dearer than their age, by sex
SELECT p.sex, COUNT(DISTINCT p.age) FROM people p JOIN visits v ON p.person_id = v.person_id AND v.cost > p.age GROUP BY p.sex;
--> COUNT(DISTINCT p.age): 1 1 1 | 2 √2 1

-- count / left join using owner / group category: Visits by sex, nobody's visits not counted
SELECT p.sex, COUNT(v.person_id) AS visits, COUNT(*) FROM people p LEFT JOIN visits v USING (person_id) GROUP BY p.sex;
--> COUNT(v.person_id), COUNT(*): 3 3 3 | 6 √18 3

-- distinct values / left join using owner / plain: People who came
SELECT COUNT(DISTINCT v.person_id) FROM people p LEFT JOIN visits v USING (person_id);
--> COUNT(DISTINCT v.person_id): 3 3 3 | 3 3 3

-- count / right join using owner / group category: The key that is kept is the people's
SELECT sex, COUNT(person_id), COUNT(v.person_id) AS visits FROM visits v RIGHT JOIN people p USING (person_id) GROUP BY sex;
--> COUNT(v.person_id), COUNT(person_id): 3 3 3 | 6 √18 3

-- count / left join using owner / all of one side: The other side's columns, its key among them
SELECT COUNT(*), COUNT(s.person_id) FROM (SELECT v.* FROM people p LEFT JOIN visits v USING (person_id)) AS s;
--> COUNT(s.person_id), COUNT(*): 3 3 3 | 6 √18 3

-- count / left join public using / where null: Visits to clinics that are not large
SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT clinic FROM clinics WHERE beds > 100) AS c USING (clinic) WHERE c.clinic IS NULL;
--> COUNT(*): 3 3 3 | 3 3 3

-- mean / join using owner and more / plain: What the last visit cost
SELECT AVG(v.cost) FROM visits v JOIN (SELECT person_id, MAX(day) AS day FROM visits GROUP BY person_id) AS l USING (person_id, day);
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / left join using owner and more / group category: Last visits and others, by clinic
SELECT v.clinic, COUNT(l.day) AS last, COUNT(*) AS visits
FROM visits v LEFT JOIN (SELECT person_id, MAX(day) AS day FROM visits GROUP BY person_id) AS l USING (person_id, day) GROUP BY v.clinic;
--> COUNT(l.day), COUNT(*): 3 3 3 | 6 √18 3

-- count / using, owner in where / plain: Pairs of visits to one clinic
SELECT COUNT(*) FROM visits a JOIN visits b USING (clinic) WHERE a.person_id = b.person_id AND a.day < b.day;
--> COUNT(*): 9 9 9 | 9 9 9

-- count / join in brackets / group category: Visits by sex, in brackets
SELECT p.sex, COUNT(*) FROM (people p JOIN visits v ON p.person_id = v.person_id) GROUP BY p.sex;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / table in brackets / where: Brackets that change nothing
SELECT COUNT(*) FROM ((people)) WHERE smoker;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / table in brackets / alias: Brackets with a name
SELECT q.sex, COUNT(*) FROM (people p) AS q GROUP BY q.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- mean / join of brackets / group category: Tests by sex, visits and tests joined first
SELECT p.sex, AVG(l.value) FROM people p JOIN (visits v JOIN labs l ON v.visit_id = l.visit_id) ON p.person_id = v.person_id GROUP BY p.sex;
--> AVG(l.value): 48000 48000 48000 | 96000 √4608000000 48000

-- count / left join of brackets / group category: Whoever has no visit with a test is there once
SELECT p.sex, COUNT(*), COUNT(l.value) AS tests, COUNT(v.person_id)
FROM people p LEFT JOIN (visits v JOIN labs l USING (visit_id)) USING (person_id) GROUP BY p.sex;
--> COUNT(l.value): 12 12 12 | 24 √288 12
--> COUNT(v.person_id), COUNT(*): 12 12 12 | 24 √288 12

-- sum / join of brackets, named / group public: Costs by town, the joined tables under one name
SELECT t.town, SUM(t.cost) FROM people p JOIN (visits v JOIN clinics c USING (clinic)) AS t ON p.person_id = t.person_id WHERE p.smoker GROUP BY t.town;
--> SUM(t.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / joins without brackets / group category: Conditions in the order of closing brackets
SELECT v.clinic, COUNT(*) FROM people p JOIN visits v JOIN labs l ON v.visit_id = l.visit_id ON p.person_id = v.person_id GROUP BY v.clinic;
--> COUNT(*): 12 12 12 | 24 √288 12

-- count / EXISTS in brackets / plain: Who had a glucose test?
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM (visits v JOIN labs l USING (visit_id)) WHERE v.person_id = p.person_id AND l.test = 'glucose');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / left joins through a key / group category: People, their visits and tests, and those who have none
SELECT p.sex, COUNT(*), COUNT(v.visit_id) AS visits, COUNT(l.visit_id) AS tests
FROM people p LEFT JOIN visits v ON p.person_id = v.person_id LEFT JOIN labs l ON v.visit_id = l.visit_id GROUP BY p.sex;
--> COUNT(v.visit_id), COUNT(*): 12 12 12 | 24 √288 12
--> COUNT(l.visit_id): 12 12 12 | 24 √288 12

-- count / left joins through a key, using / group nullable: Tests by kind, and people and visits without
SELECT l.test, COUNT(*) FROM people p LEFT JOIN visits v USING (person_id) LEFT JOIN labs l USING (visit_id) GROUP BY l.test;
--> COUNT(*): 12 12 12 | 24 √288 12

-- sum / left join, then through a key / group category: Values by sex
SELECT p.sex, SUM(l.value) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id JOIN labs l ON v.visit_id = l.visit_id GROUP BY p.sex;
--> SUM(l.value): 48000 48000 48000 | 96000 √4608000000 48000

-- count / left join, then on its owner / plain: An owner that may be missing meets nobody
SELECT COUNT(*), COUNT(w.clinic) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id AND v.cost > 500
LEFT JOIN visits w ON v.person_id = w.person_id;
--> COUNT(w.clinic), COUNT(*): 9 9 9 | 18 √162 9

-- count / left join, then EXISTS / group category: Visits without a test, and people without a visit
SELECT p.sex, COUNT(*) FROM people p LEFT JOIN visits v USING (person_id)
WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE l.visit_id = v.visit_id) GROUP BY p.sex;
--> COUNT(*): 3 3 3 | 6 √18 3

-- mean / each visit / plain: Tests of a visit that has any
SELECT AVG(n) FROM (SELECT visit_id, COUNT(*) AS n FROM labs GROUP BY visit_id) AS s;
--> AVG(n): 12 12 12 | 24 √288 12

-- count / each visit / group count: How many visits have how many tests?
SELECT n, COUNT(*) FROM (SELECT v.visit_id, COUNT(l.test) AS n FROM visits v LEFT JOIN labs l USING (visit_id) GROUP BY v.visit_id) AS s GROUP BY n;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum / each visit and owner / having: The largest values of visits with several tests
SELECT SUM(top) FROM (SELECT v.person_id, v.visit_id, MAX(l.value) AS top FROM visits v JOIN labs l ON v.visit_id = l.visit_id
GROUP BY v.person_id, v.visit_id HAVING COUNT(*) > 1) AS s;
--> SUM(top): 12000 12000 12000 | 12000 12000 12000

-- count / each visit and owner, left joins / group count: Tests of each visit, and of those who never came
SELECT n, COUNT(*) FROM (SELECT p.person_id, v.visit_id, COUNT(l.test) AS n FROM people p LEFT JOIN visits v USING (person_id)
LEFT JOIN labs l USING (visit_id) GROUP BY 1, 2) AS s GROUP BY n;
--> COUNT(*): 4 4 4 | 8 √32 4

-- count / each visit, then each person / group count: How many people have how many visits with a test?
SELECT n, COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM (SELECT v.person_id, v.visit_id FROM visits v JOIN labs l USING (visit_id)
GROUP BY v.person_id, v.visit_id) AS s GROUP BY person_id) AS t GROUP BY n;
--> COUNT(*): 1 1 1 | 2 √2 1

-- mean / joined to each visit / group category: Tests of a visit, by clinic
SELECT v.clinic, AVG(COALESCE(s.n, 0)) FROM visits v LEFT JOIN (SELECT visit_id, COUNT(*) AS n FROM labs GROUP BY visit_id) AS s USING (visit_id) GROUP BY v.clinic;
--> AVG(COALESCE(s.n, 0)): 48 48 48 | 96 √4608 48

-- persons / each visit and owner / where: People with a visit of several tests
SELECT COUNT(DISTINCT person_id) FROM (SELECT v.person_id, v.visit_id, COUNT(*) AS n FROM visits v JOIN labs l USING (visit_id) GROUP BY ALL) AS s WHERE n > 1;
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1

-- count / owner IN union / group category: People who are dear or in pain, by sex
SELECT sex, COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > 500 UNION SELECT person_id FROM visits WHERE pain > 3) GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / owner IN intersection / plain: People who are dear and in pain
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > 500 INTERSECT SELECT person_id FROM visits WHERE pain > 3);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / owner NOT IN difference / plain: All but those who are dear and never in pain
SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits WHERE cost > 500 EXCEPT SELECT person_id FROM visits WHERE pain > 3);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / union of owners / plain: People in either table
SELECT COUNT(*) FROM (SELECT person_id FROM people WHERE age > 60 UNION SELECT person_id FROM visits) AS s;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / difference of owners / with: People who came and are not known to smoke
WITH came AS (SELECT person_id FROM visits), smokers AS (SELECT person_id FROM people WHERE smoker)
SELECT COUNT(*) FROM (SELECT person_id FROM came EXCEPT SELECT person_id FROM smokers) AS s;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / join through a key / group category: Tests ordered at each clinic
SELECT v.clinic, COUNT(*) AS tests FROM visits v JOIN labs l ON v.visit_id = l.visit_id GROUP BY v.clinic;
--> COUNT(*): 12 12 12 | 24 √288 12

-- count / three tables / group two keys: Tests by sex and clinic
SELECT p.sex, v.clinic, COUNT(*) AS tests
FROM people p JOIN visits v ON p.person_id = v.person_id JOIN labs l ON l.visit_id = v.visit_id
GROUP BY p.sex, v.clinic;
--> COUNT(*): 12 12 12 | 24 √288 12

-- count / self-join / where: Pairs of visits of one person on different days
SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id WHERE a.day < b.day;
--> COUNT(*): 9 9 9 | 9 9 9

-- count / self-join / group two keys: From which clinic to which do people change?
SELECT a.clinic AS first, b.clinic AS second, COUNT(*) AS times
FROM visits a JOIN visits b ON a.person_id = b.person_id AND a.day < b.day GROUP BY a.clinic, b.clinic;
--> COUNT(*): 9 9 9 | 18 √162 9

-- count / join public / group public: Visits in each town
SELECT c.town, COUNT(*) AS visits FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY c.town;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join public / where public: Visits to large clinics
SELECT COUNT(*) FROM visits v JOIN clinics c USING (clinic) WHERE c.beds > 100;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / left join public / group public: Visits by when the clinic opened
SELECT c.opened, COUNT(*) FROM visits v LEFT JOIN clinics c ON v.clinic = c.clinic GROUP BY c.opened;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join public, several each / group public: Visits counted once for every ward of the clinic
SELECT w.ward, COUNT(*) FROM visits v JOIN wards w ON v.clinic = w.clinic GROUP BY w.ward;
--> COUNT(*): 6 6 6 | 12 √72 6

-- count / join public range / group public: People by band, from a table of bands
SELECT b.band, COUNT(*) FROM people p JOIN bands b ON p.age BETWEEN b.low AND b.high GROUP BY b.band;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / cross join public / group public: Everybody beside every clinic
SELECT c.clinic, COUNT(*) FROM people CROSS JOIN clinics c GROUP BY c.clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join computed public / group public: Visits in towns, from a computed list of clinics
SELECT c.town, COUNT(*) FROM visits v JOIN (SELECT clinic, upper(town) AS town FROM clinics WHERE beds > 0) AS c
ON v.clinic = c.clinic GROUP BY c.town;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / IN public / plain: Visits to clinics at the bay
SELECT COUNT(*) FROM visits WHERE clinic IN (SELECT clinic FROM clinics WHERE town = 'Bay');
--> COUNT(*): 3 3 3 | 3 3 3

-- count / NOT IN public / plain: Visits to clinics without a known ward
SELECT COUNT(*) FROM visits WHERE clinic NOT IN (SELECT clinic FROM wards WHERE clinic IS NOT NULL);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / owner IN / plain: How many people came at all?
SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / owner IN / group category: People with an expensive visit, by sex
SELECT sex, COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE cost > 500) GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / owner NOT IN / plain: How many never came?
SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / EXISTS / plain: How many had a test of cholesterol?
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v JOIN labs l ON v.visit_id = l.visit_id
WHERE v.person_id = p.person_id AND l.test = 'cholesterol');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / EXISTS / first row: Who was seen? As an ORM asks it
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 AS a FROM visits u WHERE u.person_id = (p.person_id) ORDER BY u.day LIMIT 1);
--> COUNT(*): 1 1 1 | 1 1 1

-- mean / join / null-safe: Cost by sex, joined as tools do that want NULL to meet NULL
SELECT p.sex, AVG(v.cost) FROM visits v LEFT JOIN people p
ON (v.person_id = p.person_id OR v.person_id IS NULL AND p.person_id IS NULL) GROUP BY p.sex;
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- count / join on public / null-safe: Visits by town, where the clinic is not missing
SELECT c.town, COUNT(*) FROM visits v JOIN clinics c ON v.clinic IS NOT DISTINCT FROM c.clinic GROUP BY c.town;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / EXISTS / several conditions: Visits that another visit of the same person followed
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person_id = v.person_id AND w.day > v.day);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / EXISTS / filter: Of all visits, those of smokers
SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id AND p.smoker)) AS n
FROM visits v;
--> COUNT(*) FILTER(WHERE EXISTS(SELECT 1 FROM people AS p WH...: 3 3 3 | 3 3 3

-- count / NOT EXISTS / group category: People without visits, by sex
SELECT sex, COUNT(*) FROM people p
WHERE NOT EXISTS (SELECT * FROM visits v WHERE v.person_id = p.person_id) GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / EXISTS / or: Ill, or expensive
SELECT COUNT(*) FROM people p WHERE diagnosis = 'flu'
OR EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND v.cost >= 1000);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / WITH twice / owner IN: A name used inside and outside
WITH v AS (SELECT person_id, cost FROM visits)
SELECT COUNT(*) FROM v WHERE person_id IN (SELECT person_id FROM v WHERE cost > 900);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / WITH twice / EXISTS: A name correlated with itself
WITH v AS (SELECT person_id, cost, clinic FROM visits)
SELECT COUNT(*) FROM v AS a WHERE EXISTS (SELECT 1 FROM v AS b WHERE b.person_id = a.person_id AND b.cost > a.cost);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / WITH / group case: A name for a computed column
WITH p AS (SELECT *, CASE WHEN age >= 65 THEN 'old' ELSE 'young' END AS era FROM people)
SELECT era, COUNT(*) FROM p GROUP BY era;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subquery / where: A filter on a filter
SELECT COUNT(*) FROM (SELECT age, sex FROM (SELECT * FROM people WHERE age > 18) AS a WHERE sex = 'F') AS b WHERE age < 65;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / UNION ALL / plain: All records that we hold
SELECT COUNT(*) FROM (SELECT person_id FROM people UNION ALL SELECT person_id FROM visits) AS records;
--> COUNT(*): 4 4 4 | 4 4 4

-- count / UNION ALL / group category: Records by kind
SELECT kind, COUNT(*) FROM (SELECT 'person' AS kind, age AS x FROM people
UNION ALL SELECT 'visit', pain FROM visits) AS records GROUP BY kind;
--> COUNT(*): 4 4 4 | 8 √32 4

-- count / per person / plain: How many people came more than twice?
SELECT COUNT(*) FROM (SELECT person_id FROM visits GROUP BY person_id HAVING COUNT(*) > 2) AS often;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / per person / group number: People by number of visits
SELECT visits, COUNT(*) AS people FROM (SELECT person_id, COUNT(*) AS visits FROM visits GROUP BY person_id) AS t
GROUP BY visits ORDER BY visits;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / per person / group text: People by the note of their last visit
SELECT last, COUNT(*) FROM (SELECT person_id, ARG_MAX(note, day) AS last FROM visits GROUP BY person_id) AS t GROUP BY last;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / per person and key / group category: Clinics and how many people are regulars there
SELECT clinic, COUNT(*) AS regulars
FROM (SELECT person_id, clinic, COUNT(*) AS n FROM visits GROUP BY person_id, clinic HAVING COUNT(*) >= 2) AS t
GROUP BY clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / per person joined / group category: Frequent visitors by sex
SELECT p.sex, COUNT(*) FROM people p
JOIN (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS v ON p.person_id = v.person_id
WHERE v.n >= 2 GROUP BY p.sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / window / where: The first visit of everybody
SELECT COUNT(*) FROM (SELECT clinic, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) AS t
WHERE n = 1;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / window / group category: At which clinic do people start?
SELECT clinic, COUNT(*) AS people
FROM (SELECT clinic, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day, cost) AS n FROM visits) AS t
WHERE n <= 1 GROUP BY clinic;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / window / group two keys: From one visit to the next
SELECT before, clinic, COUNT(*) FROM (SELECT clinic, LAG(clinic) OVER (PARTITION BY person_id ORDER BY day) AS before
FROM visits) AS t GROUP BY before, clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- mean / window / own mean beside each row: How far visits cost from the person's own mean
SELECT AVG(ABS(cost - own)) FROM (SELECT cost, AVG(cost) OVER (PARTITION BY person_id) AS own FROM visits) AS t;
--> AVG(ABS(cost - own)): 300000000 300000000 300000000 | 600000000 √180000000000000000 300000000

-- sum / window / running: What people had paid by their second visit
SELECT SUM(paid) FROM (SELECT SUM(cost) OVER (PARTITION BY person_id ORDER BY day) AS paid,
ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) AS t WHERE n = 2;
--> SUM(paid): 300000 300000 300000 | 300000 300000 300000

-- count / window / two orders: Visits that are neither the first nor the last
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS first,
ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day DESC) AS last FROM visits) AS t WHERE first > 1 AND last > 1;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / window / frame of rows: Visits that cost more than the two before them together
SELECT COUNT(*) FROM (SELECT cost, SUM(cost) OVER (PARTITION BY person_id ORDER BY day, cost ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)
AS before FROM visits) AS t WHERE cost > before;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / window / first value: Visits to the clinic where the person began, by clinic
SELECT first, COUNT(*) FROM (SELECT clinic, FIRST_VALUE(clinic) OVER (PARTITION BY person_id ORDER BY day, cost) AS first
FROM visits) AS t WHERE clinic = first GROUP BY first;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / window / last value: Visits by the clinic where the person was last
SELECT last, COUNT(*) FROM (SELECT LAST_VALUE(clinic) OVER (PARTITION BY person_id ORDER BY day, cost
ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last FROM visits) AS t GROUP BY last;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum, both signs / window / default: Changes of pain, from no pain at first
SELECT SUM(pain - before) FROM (SELECT pain, LAG(pain, 1, 0) OVER (PARTITION BY person_id ORDER BY day, cost) AS before
FROM visits) AS t;
--> SUM(pain - before): 30 30 30 | 60 60 60

-- count / window / default of texts: From one visit to the next, from Hill at first
SELECT before, COUNT(*) FROM (SELECT LAG(clinic, 1, 'Hill') OVER (PARTITION BY person_id ORDER BY day, cost) AS before FROM visits) AS t
GROUP BY before;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum / visits / narrow cast: What costs less than a hundred, and NULL of what does not fit
SELECT SUM(TRY_CAST(cost AS DECIMAL(4, 2))) AS small, COUNT(TRY_CAST(cost AS DECIMAL(4, 2))) AS n FROM visits;
--> SUM(TRY_CAST(cost AS DECIMAL(4, 2))), COUNT(TRY_CAST(cost AS DECIMAL(4, 2))): 29997 29997 29997 | 59994 √1799640018 29997

-- count / window / tiles: Visits by half of the person's own time
SELECT half, COUNT(*) FROM (SELECT NTILE(2) OVER (PARTITION BY person_id ORDER BY day, cost) AS half FROM visits) AS t GROUP BY half;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / window / count with a filter: Visits of people who had a dear one
SELECT COUNT(*) FROM (SELECT COUNT(*) FILTER (WHERE cost > 500) OVER (PARTITION BY person_id) AS dear FROM visits) AS t WHERE dear > 0;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / window / running count: How many visits in, by clinic
SELECT clinic, n, COUNT(*) FROM (SELECT clinic, COUNT(*) OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) AS t GROUP BY clinic, n;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / QUALIFY / group category: The dearest visit of each person, by clinic
SELECT clinic, COUNT(*) FROM (SELECT clinic FROM visits
QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY cost DESC) = 1) AS t GROUP BY clinic;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / QUALIFY / column that is not shown: Visits to the hill of people who come again
SELECT COUNT(*) FROM (SELECT person_id, cost FROM visits
QUALIFY COUNT(*) OVER (PARTITION BY person_id) >= 2 AND clinic = 'Hill') AS t;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / QUALIFY / name of a column: An alias does not hide the column of its name
SELECT COUNT(*) FROM (SELECT person_id, cost + 1 AS cost FROM visits
QUALIFY COUNT(*) OVER (PARTITION BY person_id) >= 2 AND cost > 2) AS t;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / QUALIFY / alias: Each person's dearest visits, under another name
SELECT k, COUNT(*) FROM (SELECT person_id, cost AS k FROM visits
QUALIFY k = MAX(cost) OVER (PARTITION BY person_id)) AS t GROUP BY k;
--> COUNT(*): 3 3 3 | 6 √18 3

-- mean / star / names in a list: The columns of * are in the order of the policy
SELECT SUM(e) FROM (SELECT * FROM visits) AS t(a, b, c, d, e);
--> SUM(e): 300000 300000 300000 | 300000 300000 300000

-- mean / star / right join: Whichever side is kept, the left side's columns come first
SELECT SUM(e), SUM(j) FROM (SELECT * FROM visits RIGHT JOIN people ON visits.person_id = people.person_id)
AS t(a, b, c, d, e, f, g, h, i, j);
--> SUM(e): 300000 300000 300000 | 300000 300000 300000
--> SUM(j): 360 360 360 | 360 360 360

-- mean / star / right join using: What is one column of two stands where the left side has it
SELECT SUM(e), SUM(i) FROM (SELECT * FROM visits RIGHT JOIN people USING (person_id)) AS t(a, b, c, d, e, f, g, h, i);
--> SUM(e): 300000 300000 300000 | 300000 300000 300000
--> SUM(i): 360 360 360 | 360 360 360

-- mean / star / public first: A public table's columns stand where it stands
SELECT b, SUM(c), COUNT(*) FROM (SELECT * FROM clinics JOIN visits ON clinics.clinic = visits.clinic) AS t(a, b, c) GROUP BY b;
--> SUM(c), COUNT(*): 363 363 363 | 726 √263538 363

-- sum / two sums / a multiple: Twice the same, asked as a subquery
SELECT (SELECT SUM(age) FROM people) AS a, (SELECT SUM(age * 2) FROM people) AS b;
--> SUM(age): 120 120 120 | 120 120 120

-- count / QUALIFY / rank: Visits that cost as much as the person's dearest
SELECT COUNT(*) FROM (SELECT cost, RANK() OVER (PARTITION BY person_id ORDER BY cost DESC) AS place FROM visits
QUALIFY place = 1) AS t;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / DISTINCT per person / group category: People per clinic, by distinct pairs
SELECT clinic, COUNT(*) AS people FROM (SELECT DISTINCT person_id, clinic FROM visits) AS t GROUP BY clinic;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / DISTINCT per person / plain: How many came at all, by distinct names
SELECT COUNT(*) FROM (SELECT DISTINCT person_id FROM visits) AS t;
--> COUNT(*): 1 1 1 | 1 1 1

-- ===== counts of values =====

-- count of x / one row / plain: Of how many do we know the income?
SELECT COUNT(income) FROM people;
--> COUNT(income): 1 1 1 | 1 1 1

-- count of x / one row / group category: Known incomes by sex
SELECT sex, COUNT(income) AS known FROM people GROUP BY sex;
--> COUNT(income): 1 1 1 | 2 √2 1

-- count of x / one row / shared: Known incomes beside everybody
SELECT COUNT(income) AS known, COUNT(*) AS people FROM people;
--> COUNT(income), COUNT(*): 1 1 1 | 2 √2 1

-- count of x / several rows / filter: Known pain at the harbor
SELECT COUNT(pain) FILTER (WHERE clinic = 'Harbor') AS n FROM visits;
--> COUNT(pain) FILTER(WHERE clinic = 'Harbor'): 3 3 3 | 3 3 3

-- count of x / several rows / case inside: A count made of a CASE
SELECT COUNT(CASE WHEN pain > 0 THEN 1 END) AS worse FROM visits;
--> COUNT(CASE WHEN pain > 0 THEN 1 END): 3 3 3 | 3 3 3

-- count of x / left join on owner / plain: Visits, counted from the people's side
SELECT COUNT(v.visit_id) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id;
--> COUNT(v.visit_id): 3 3 3 | 3 3 3

-- count of x / window / plain: Visits that had one before them
SELECT COUNT(before) FROM (SELECT LAG(day) OVER (PARTITION BY person_id ORDER BY day) AS before FROM visits) AS t;
--> COUNT(before): 3 3 3 | 3 3 3

-- count if / one row / plain: Smokers, counted by a condition
SELECT COUNT_IF(smoker) FROM people;
--> COUNT_IF(smoker): 1 1 1 | 1 1 1

-- count if / several rows / group category: Painful visits at each clinic
SELECT clinic, COUNT_IF(pain > 2) AS painful FROM visits GROUP BY clinic;
--> COUNT_IF(pain > 2): 3 3 3 | 6 √18 3

-- count if / join on owner / filter: Expensive visits of old people
SELECT COUNT_IF(v.cost > 500) FILTER (WHERE p.age > 80) AS n
FROM people p JOIN visits v ON p.person_id = v.person_id;
--> COUNT_IF(v.cost > 500) FILTER(WHERE p.age > 80): 3 3 3 | 3 3 3

-- persons / one row / plain: People, by their identifiers
SELECT COUNT(DISTINCT person_id) FROM people;
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1

-- persons / several rows / plain: How many different people came?
SELECT COUNT(DISTINCT person_id) FROM visits;
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1

-- persons / several rows / where: How many came in December?
SELECT COUNT(DISTINCT person_id) FROM visits WHERE day >= DATE '2024-12-01';
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1

-- persons / several rows / filter: Patients of two clinics in one question
SELECT COUNT(DISTINCT person_id) FILTER (WHERE clinic = 'Hill') AS hill,
       COUNT(DISTINCT person_id) FILTER (WHERE clinic = 'Market') AS market FROM visits;
--> COUNT(DISTINCT person_id) FILTER(WHERE clinic = 'Hill'): 1 1 1 | 1 1 1
--> COUNT(DISTINCT person_id) FILTER(WHERE clinic = 'Market'): 1 1 1 | 1 1 1

-- persons / several rows / group category: Patients of each clinic
SELECT clinic, COUNT(DISTINCT person_id) AS patients FROM visits GROUP BY clinic;
--> COUNT(DISTINCT person_id): 3 √3 1 | 3 √3 1

-- persons / several rows / group two keys: Patients by clinic and month
SELECT clinic, month(day) AS month, COUNT(DISTINCT person_id) FROM visits GROUP BY clinic, month;
--> COUNT(DISTINCT person_id): 3 √3 1 | 6 √6 1

-- persons / several rows / group text: People per note
SELECT note, COUNT(DISTINCT person_id) AS people FROM visits GROUP BY note;
--> keys: 3 | 6
--> COUNT(DISTINCT person_id): 3 √3 1 | 6 √6 1

-- persons / several rows / group text and category: People per note and clinic
SELECT note, clinic, COUNT(DISTINCT person_id) AS people FROM visits GROUP BY note, clinic;
--> keys: 3 | 6
--> COUNT(DISTINCT person_id): 3 √3 1 | 6 √6 1

-- persons / several rows / shared: Visits, and people who made them
SELECT clinic, COUNT(*) AS visits, COUNT(DISTINCT person_id) AS people FROM visits GROUP BY clinic;
--> COUNT(DISTINCT person_id): 3 √3 1 | 3 √3 1
--> COUNT(*): 3 3 3 | 6 √18 3

-- persons / several rows / ratio: Visits per patient
SELECT COUNT(*) / COUNT(DISTINCT person_id) AS visits_per_patient FROM visits;
--> COUNT(DISTINCT person_id): 1 1 1 | 1 1 1
--> COUNT(*): 3 3 3 | 3 3 3

-- persons / owned through / join through a key: Patients with a high value, by clinic
SELECT v.clinic, COUNT(DISTINCT v.person_id) FROM visits v JOIN labs l ON v.visit_id = l.visit_id
WHERE l.value > 300 GROUP BY v.clinic;
--> COUNT(DISTINCT v.person_id): 3 √3 1 | 3 √3 1

-- persons / join on owner / group category: Who came, by sex: one group a person
SELECT p.sex, COUNT(DISTINCT p.person_id) AS people
FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex;
--> COUNT(DISTINCT p.person_id): 1 1 1 | 2 √2 1

-- persons / self-join / group two keys: People who went to both
SELECT a.clinic AS one, b.clinic AS other, COUNT(DISTINCT a.person_id) AS people
FROM visits a JOIN visits b ON a.person_id = b.person_id GROUP BY a.clinic, b.clinic;
--> COUNT(DISTINCT a.person_id): 9 3 1 | 9 3 1

-- persons / WITH twice / group two keys: The same, from one name
WITH v AS (SELECT person_id, clinic FROM visits)
SELECT a.clinic AS one, b.clinic AS other, COUNT(DISTINCT a.person_id) AS people
FROM v AS a JOIN v AS b ON a.person_id = b.person_id GROUP BY a.clinic, b.clinic;
--> COUNT(DISTINCT a.person_id): 9 3 1 | 9 3 1

-- persons / join public / group public: Patients of each town
SELECT c.town, COUNT(DISTINCT v.person_id) FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY c.town;
--> COUNT(DISTINCT v.person_id): 2 √2 1 | 2 √2 1

-- persons / join public, several each / group public: People per ward
SELECT w.ward, COUNT(DISTINCT v.person_id) FROM visits v JOIN wards w ON v.clinic = w.clinic GROUP BY w.ward;
--> COUNT(DISTINCT v.person_id): 2 √2 1 | 2 √2 1

-- persons / UNION ALL / plain: People of whom we hold any record
SELECT COUNT(DISTINCT id) FROM (SELECT person_id AS id FROM people UNION ALL SELECT person_id FROM visits) AS t;
--> COUNT(DISTINCT id): 1 1 1 | 1 1 1

-- persons / left join on owner / group nullable: People per clinic, and those with none
SELECT v.clinic, COUNT(DISTINCT p.person_id) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id
GROUP BY v.clinic;
--> COUNT(DISTINCT p.person_id): 3 √3 1 | 4 2 1

-- distinct values / one row / plain: How many quarters do people come from?
SELECT COUNT(DISTINCT zip) FROM people;
--> COUNT(DISTINCT zip): 1 1 1 | 1 1 1

-- distinct values / one row / nobody: Whether somebody is 120, which ages there are, and illnesses of nobody
SELECT COUNT(DISTINCT CASE WHEN age > 119 THEN 1 END) AS oldest, COUNT(DISTINCT NULLIF(age, 0)) AS ages,
COUNT(DISTINCT CASE WHEN age > 119 AND age < 120 THEN diagnosis END) AS ill FROM people;
--> COUNT(DISTINCT CASE WHEN age > 119 THEN 1 END): 1 1 1 | 1 1 1
--> COUNT(DISTINCT NULLIF(age, 0)): 1 1 1 | 1 1 1
--> COUNT(DISTINCT CASE WHEN age > 119 AND age < 120 THEN dia...: 1 1 1 | 1 1 1

-- distinct values / several rows / plain: On how many days did anybody come?
SELECT COUNT(DISTINCT day) FROM visits;
--> COUNT(DISTINCT day): 3 3 3 | 3 3 3

-- distinct values / several rows / group category: Days of work at each clinic
SELECT clinic, COUNT(DISTINCT day) AS days FROM visits GROUP BY clinic;
--> COUNT(DISTINCT day): 3 3 3 | 6 √18 3

-- distinct values / several rows / where: Different notes in summer
SELECT COUNT(DISTINCT lower(note)) FROM visits WHERE month(day) BETWEEN 6 AND 8;
--> COUNT(DISTINCT LOWER(note)): 3 3 3 | 3 3 3

-- distinct values / owned through / few values: Whether anybody fasted, and anybody did not
SELECT COUNT(DISTINCT fasting) FROM labs;
--> COUNT(DISTINCT fasting): 2 2 2 | 2 2 2

-- distinct values / owned through / few values filtered: Tests with a high value
SELECT COUNT(DISTINCT test) FILTER (WHERE value > 300) FROM labs;
--> COUNT(DISTINCT test) FILTER(WHERE value > 300): 2 2 2 | 2 2 2

-- distinct values / join through a key / few values by group: Kinds of tests at each clinic
SELECT v.clinic, COUNT(DISTINCT l.test) AS tests FROM visits v JOIN labs l ON v.visit_id = l.visit_id GROUP BY v.clinic;
--> COUNT(DISTINCT l.test): 6 √12 2 | 6 √12 2

-- distinct values / several rows / few values by unknown key: Notes about pain and about none
SELECT note, COUNT(DISTINCT pain > 0) AS kinds FROM visits GROUP BY note;
--> keys: 3 | 6
--> COUNT(DISTINCT pain > 0): 3 √5 2 | 6 √10 2

-- distinct values / join on owner / filter: Clinics that smokers go to
SELECT COUNT(DISTINCT v.clinic) FILTER (WHERE p.smoker) AS n FROM people p JOIN visits v ON p.person_id = v.person_id;
--> COUNT(DISTINCT v.clinic) FILTER(WHERE p.smoker): 3 3 3 | 3 3 3

-- ===== sums =====

-- sum / one row / plain: All incomes together
SELECT SUM(income) FROM people;
--> SUM(income): 20000000 20000000 20000000 | 20000000 20000000 20000000

-- sum / one row / where: Incomes of those over 60
SELECT SUM(income) FROM people WHERE age > 60;
--> SUM(income): 20000000 20000000 20000000 | 20000000 20000000 20000000

-- sum / one row / group category: Incomes by sex
SELECT sex, SUM(income) AS income FROM people GROUP BY sex;
--> SUM(income): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- sum / one row / filter: Incomes of smokers
SELECT SUM(income) FILTER (WHERE smoker) AS smokers FROM people;
--> SUM(income) FILTER(WHERE smoker): 20000000 20000000 20000000 | 20000000 20000000 20000000

-- sum / one row / group text: Incomes by quarter
SELECT zip, SUM(income) AS income FROM people GROUP BY zip;
--> keys: 1 | 2
--> SUM(income): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- sum / one row / case inside: A weight of 3 for some
SELECT SUM(CASE WHEN smoker THEN 3 WHEN age > 90 THEN -2 ELSE 0 END) AS points FROM people;
--> SUM(CASE WHEN smoker THEN 3 WHEN age > 90 THEN -2 ELSE 0 ...: 3 3 3 | 5 5 5

-- sum / one row / clamp: Incomes up to fifty thousand
SELECT SUM(CLAMP(income, 0, 50000)) FROM people;
--> SUM(CLAMP(income, 0, 50000)): 5000000 5000000 5000000 | 5000000 5000000 5000000

-- sum / one row / steps: The same column in two units
SELECT SUM(age) AS years, SUM(age * 12) AS months, SUM(age / 10) AS decades FROM people;
--> SUM(age), SUM(age * 12), SUM(age / 10): 120 120 120 | 120 120 120

-- sum / one row / boolean: TRUE counts as one
SELECT SUM(smoker) FROM people;
--> SUM(smoker): 1 1 1 | 1 1 1

-- sum / one row / product: Age times income, in thousands
SELECT SUM(age * income / 1000) AS x FROM people;
--> SUM(age * income / 1000): 2400000000 2400000000 2400000000 | 2400000000 2400000000 2400000000

-- sum / one row / quotient: Income per year of life
SELECT SUM(income / age) AS x FROM people;
--> SUM(income / age): 200000000001 200000000001 200000000001 | 200000000001 200000000001 200000000001

-- sum / several rows / plain: What did all visits cost?
SELECT SUM(cost) FROM visits;
--> SUM(cost): 300000 300000 300000 | 300000 300000 300000

-- sum / several rows / group category: Costs at each clinic
SELECT clinic, SUM(cost) AS cost FROM visits GROUP BY clinic;
--> SUM(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / several rows / group month: Costs by month
SELECT month(day) AS month, SUM(cost) AS cost FROM visits GROUP BY 1;
--> SUM(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / several rows / rollup: Costs by clinic, and all together
SELECT clinic, SUM(cost) AS cost FROM visits GROUP BY ROLLUP (clinic);
--> SUM(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / several rows / difference: How much do two clinics differ?
SELECT SUM(cost) FILTER (WHERE clinic = 'Hill') - SUM(cost) FILTER (WHERE clinic = 'Market') AS gap FROM visits;
--> SUM(cost) FILTER(WHERE clinic = 'Hill'), SUM(cost) FILTER(WHERE clinic = 'Market'): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / several rows / order and limit: The dearest clinic
SELECT clinic, SUM(cost) AS cost FROM visits GROUP BY clinic ORDER BY cost DESC, clinic LIMIT 2;
--> SUM(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / owned through / group category: Values by test
SELECT test, SUM(value) AS total FROM labs GROUP BY test;
--> SUM(value): 16000 16000 16000 | 32000 √512000000 16000

-- sum / join on owner / group category: What visits cost, by sex
SELECT p.sex, SUM(v.cost) AS cost FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex;
--> SUM(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- sum / join on owner / other side: Incomes, counted once per visit
SELECT SUM(p.income) FROM people p JOIN visits v ON p.person_id = v.person_id;
--> SUM(p.income): 60000000 60000000 60000000 | 60000000 60000000 60000000

-- sum / left join on owner / coalesce: Costs, with nothing for those who never came
SELECT SUM(COALESCE(v.cost, 0)) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id;
--> SUM(COALESCE(v.cost, 0)): 300000 300000 300000 | 300000 300000 300000

-- sum / join public / product: A price from a public table
SELECT SUM(v.cost * c.beds) AS x FROM visits v JOIN clinics c ON v.clinic = c.clinic;
--> SUM(v.cost * c.beds): 36000000 36000000 36000000 | 36300000 36300000 36300000

-- sum / join public / public column: Beds that visitors had around them
SELECT SUM(c.beds) FROM visits v JOIN clinics c ON v.clinic = c.clinic;
--> SUM(c.beds): 360 360 360 | 363 363 363

-- sum / join public, several each / public column: Floors that a visitor may see
SELECT SUM(w.floor) FROM visits v JOIN wards w ON v.clinic = w.clinic;
--> SUM(w.floor): 18 18 18 | 18 18 18

-- sum / UNION ALL / plain: Two columns of different steps, one under the other
SELECT SUM(x) FROM (SELECT balance AS x FROM people UNION ALL SELECT cost FROM visits) AS t;
--> SUM(x): 400000 400000 400000 | 600000 600000 600000

-- sum / per person / plain: What each person paid, up to 500
SELECT SUM(CLAMP(paid, 0, 500)) FROM (SELECT person_id, SUM(cost) AS paid FROM visits GROUP BY person_id) AS t;
--> SUM(CLAMP(paid, 0, 500)): 50000 50000 50000 | 50000 50000 50000

-- sum / per person / group category: The dearest visit of everybody, by sex
SELECT p.sex, SUM(v.most) AS cost FROM people p
JOIN (SELECT person_id, MAX(cost) AS most FROM visits GROUP BY person_id) AS v ON p.person_id = v.person_id GROUP BY p.sex;
--> SUM(v.most): 100000 100000 100000 | 200000 √20000000000 100000

-- sum / window / where: The cost of first visits
SELECT SUM(cost) FROM (SELECT cost, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) AS t
WHERE n < 2;
--> SUM(cost): 100000 100000 100000 | 100000 100000 100000

-- sum / EXISTS / where: Costs of people who were tested
SELECT SUM(v.cost) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.visit_id = v.visit_id);
--> SUM(v.cost): 300000 300000 300000 | 300000 300000 300000

-- sum, both signs / one row / plain: All balances together
SELECT SUM(balance) FROM people;
--> SUM(balance): 2000 2000 2000 | 3000 3000 3000

-- sum, both signs / one row / group category: Balances by sex
SELECT sex, SUM(balance) AS balance FROM people GROUP BY sex;
--> SUM(balance): 2000 2000 2000 | 4000 3000 3000

-- sum, both signs / one row / absolute: How far from nothing
SELECT SUM(ABS(balance)) FROM people;
--> SUM(ABS(balance)): 2000 2000 2000 | 2000 2000 2000

-- sum, both signs / several rows / plain: Does pain go down?
SELECT SUM(pain) FROM visits;
--> SUM(pain): 15 15 15 | 30 30 30

-- sum, both signs / several rows / group category: Pain at each clinic
SELECT clinic, SUM(pain) AS pain FROM visits GROUP BY clinic;
--> SUM(pain): 15 15 15 | 30 30 30

-- sum, both signs / several rows / group text: Pain by note
SELECT note, SUM(pain) AS pain FROM visits GROUP BY note;
--> keys: 3 | 6
--> SUM(pain): 15 15 15 | 30 30 30

-- sum, both signs / join on owner / product: Pain times balance
SELECT SUM(v.pain * p.balance) AS x FROM people p JOIN visits v ON p.person_id = v.person_id;
--> SUM(v.pain * p.balance): 30000 30000 30000 | 60000 60000 60000

-- sum, both signs / window / plain: Changes of pain from one visit to the next
SELECT SUM(pain - before) AS change FROM (SELECT pain, LAG(pain) OVER (PARTITION BY person_id ORDER BY day, cost) AS before
FROM visits) AS t;
--> SUM(pain - before): 30 30 30 | 60 60 60

-- ===== means =====

-- mean / one row / plain: The mean age
SELECT AVG(age) FROM people;
--> AVG(age): 120 120 120 | 240 √28800 120

-- mean / one row / where: The mean income of smokers
SELECT AVG(income) FROM people WHERE smoker;
--> AVG(income): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- mean / one row / group category: What do people earn, by sex?
SELECT sex, AVG(income) AS income FROM people GROUP BY sex;
--> AVG(income): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- mean / one row / filter: Mean ages with and without an income
SELECT AVG(age) FILTER (WHERE income IS NULL) AS without, AVG(age) FILTER (WHERE income > 0) AS with_income FROM people;
--> AVG(age) FILTER(WHERE income IS NULL): 120 120 120 | 240 √28800 120
--> AVG(age) FILTER(WHERE income > 0): 120 120 120 | 240 √28800 120

-- mean / one row / shared: Number, sum and mean for the price of the mean
SELECT COUNT(*) AS people, COUNT(income) AS known, SUM(income) AS total, AVG(income) AS mean FROM people;
--> COUNT(income), SUM(income), AVG(income), COUNT(*): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- mean / one row / ratio: How much more than women do men earn?
SELECT AVG(income) FILTER (WHERE sex = 'M') / AVG(income) FILTER (WHERE sex = 'F') AS ratio FROM people;
--> AVG(income) FILTER(WHERE sex = 'M'): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000
--> AVG(income) FILTER(WHERE sex = 'F'): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- mean / one row / group text: Mean income by quarter, with the number of people
SELECT zip, COUNT(*) AS people, AVG(income) AS income FROM people GROUP BY zip;
--> keys: 1 | 2
--> AVG(income), COUNT(*): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000

-- mean / several rows / plain: What does a visit cost?
SELECT AVG(cost) FROM visits;
--> AVG(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- mean / several rows / group category: What does a visit cost at each clinic?
SELECT clinic, AVG(cost) AS cost FROM visits GROUP BY clinic;
--> AVG(cost): 300000 300000 300000 | 600000 √180000000000 300000

-- mean / several rows / date difference: How long before the end of the year?
SELECT AVG(DATE_DIFF('day', day, DATE '2024-12-31')) AS days FROM visits;
--> AVG(DATE_DIFF('DAY', day, CAST('2024-12-31' AS DATE))): 1095 1095 1095 | 2190 √2398050 1095

-- mean / owned through / group category: Mean value of each test
SELECT test, AVG(value) AS value FROM labs GROUP BY test;
--> AVG(value): 16000 16000 16000 | 32000 √512000000 16000

-- mean / join on owner / group category: What visits cost, by sex
SELECT p.sex, AVG(v.cost) AS cost FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex;
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- mean / per person / plain: How often do those who come, come?
SELECT AVG(n) AS visits FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t;
--> AVG(n): 2 2 2 | 4 √8 2

-- mean / per person / group category: The mean of everybody's mean cost, by sex
SELECT p.sex, AVG(v.cost) AS cost FROM people p
JOIN (SELECT person_id, AVG(cost) AS cost FROM visits GROUP BY person_id) AS v ON p.person_id = v.person_id GROUP BY p.sex;
--> AVG(v.cost): 100000000 100000000 100000000 | 200000000 √20000000000000000 100000000

-- mean / window / plain: Days between a visit and the one before
SELECT AVG(DATE_DIFF('day', before, day)) AS days
FROM (SELECT day, LAG(day) OVER (PARTITION BY person_id ORDER BY day) AS before FROM visits) AS t;
--> AVG(DATE_DIFF('DAY', before, day)): 2190 2190 2190 | 4380 √9592200 2190

-- mean / join public / group public: Mean cost in each town
SELECT c.town, AVG(v.cost) AS cost FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY c.town;
--> AVG(v.cost): 300000 300000 300000 | 600000 √180000000000 300000

-- ===== spread =====

-- variance / one row / plain: How different are ages?
SELECT VARIANCE(age) FROM people;
--> VARIANCE(age): 14400 14400 14400 | 28800 √414720000 14400

-- variance / several rows / group category: Spread of the cost at each clinic
SELECT clinic, VAR_SAMP(cost) AS spread FROM visits GROUP BY clinic;
--> VARIANCE(cost): 30000000000 30000000000 30000000000 | 60000000000 √1800000000000000000000 30000000000

-- population variance / one row / where: The same of old people, as of all of them
SELECT VAR_POP(balance) FROM people WHERE age > 50;
--> VAR_POP(balance): 9000000 9000000 9000000 | 18000000 √162000000000000 9000000

-- deviation / one row / group category: Deviation of incomes by sex, with their mean
SELECT sex, STDDEV(income) AS deviation, AVG(income) AS mean FROM people GROUP BY sex;
--> STDDEV(income), AVG(income): 400000000000000 400000000000000 400000000000000 | 800000000000000 √320000000000000000000000000000 400000000000000

-- population deviation / several rows / plain: Deviation of pain
SELECT STDDEV_POP(pain) FROM visits;
--> STDDEV_POP(pain): 300 300 300 | 600 √180000 300

-- deviation / per person / plain: Do people differ in how often they come?
SELECT STDDEV_SAMP(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t;
--> STDDEV_SAMP(n): 4 4 4 | 8 √32 4

-- covariance / one row / plain: Do age and balance go together?
SELECT COVAR_POP(age, balance) FROM people;
--> COVAR_POP(age, balance): 360000 360000 360000 | 720000 √259200000000 360000

-- covariance / several rows / group category: Pain and cost at each clinic
SELECT clinic, COVAR_SAMP(pain, cost) AS x FROM visits GROUP BY clinic;
--> COVAR_SAMP(pain, cost): 750000 750000 750000 | 1500000 √1125000000000 750000

-- correlation / one row / plain: Does income grow with age?
SELECT CORR(age, income) FROM people;
--> CORR(age, income): 15428869761600 15428869761600 15428869761600 | 30857739523200 √476100044240829681669120000 15428869761600

-- correlation / join on owner / where: Age and cost, of smokers
SELECT CORR(p.age, v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id WHERE p.smoker;
--> CORR(p.age, v.cost): 27000000000000 27000000000000 27000000000000 | 54000000000000 √1458000000000000000000000000 27000000000000

-- ===== shapes, lines and other means =====

-- skewness / one row / plain: Is age skewed?
SELECT SKEWNESS(age) FROM people;
--> SKEWNESS(age): 1728000 1728000 1728000 | 3456000 √5971968000000 1728000

-- skewness / several rows / group category: Is pain skewed, at each clinic?
SELECT clinic, SKEWNESS(pain) AS x FROM visits GROUP BY clinic;
--> SKEWNESS(pain): 3000 3000 3000 | 6000 √18000000 3000

-- skewness / one row / beside others: All that is known of age, at once
SELECT COUNT(*) AS n, AVG(age) AS mean, STDDEV(age) AS deviation, SKEWNESS(age) AS x FROM people;
--> AVG(age), STDDEV(age), SKEWNESS(age), COUNT(*): 1728000 1728000 1728000 | 3456000 √5971968000000 1728000

-- skewness / one row / many steps: Is income skewed?
SELECT SKEWNESS(income) AS x FROM people;
--> SKEWNESS(income): 35071749576837 35071749576837 35071749576837 | 70143499153674 √2460055236760732577133849138 35071749576837

-- kurtosis / one row / plain: How heavy are the tails of age?
SELECT KURTOSIS(age) FROM people;
--> KURTOSIS(age): 207360000 207360000 207360000 | 414720000 √85996339200000000 207360000

-- kurtosis / one row / of both signs: Balances, as a population
SELECT KURTOSIS_POP(balance) AS x FROM people;
--> KURTOSIS_POP(balance): 81000000000000 81000000000000 81000000000000 | 162000000000000 √13122000000000000000000000000 81000000000000

-- kurtosis / one row / beside skewness: Both, of smokers
SELECT SKEWNESS(income) FILTER (WHERE smoker) AS s, KURTOSIS(income) FILTER (WHERE smoker) AS k FROM people;
--> SKEWNESS(income) FILTER(WHERE smoker), KURTOSIS(income) FILTER(WHERE smoker): 1148003578898605521 1148003578898605521 1148003578898605521 | 2296007157797211042 √2635824434328013582889200316743362882 1148003578898605521

-- regression / one row / plain: By how much does the balance grow in a year?
SELECT REGR_SLOPE(balance, age) FROM people;
--> REGR_SLOPE(balance, age): 43200000 43200000 43200000 | 86400000 √3732480000000000 43200000

-- regression / one row / all of the line: The line through age and balance, and how well it fits
SELECT REGR_SLOPE(balance, age) AS a, REGR_INTERCEPT(balance, age) AS b, REGR_R2(balance, age) AS r FROM people;
--> REGR_SLOPE(balance, age), REGR_INTERCEPT(balance, age): 43200000 43200000 43200000 | 86400000 √3732480000000000 43200000
--> REGR_R2(balance, age): 129600000000 129600000000 129600000000 | 259200000000 √33592320000000000000000 129600000000

-- regression / several rows / group category: What pain costs at each clinic
SELECT clinic, REGR_INTERCEPT(cost, pain) AS b, REGR_SLOPE(cost, pain) AS a FROM visits GROUP BY clinic;
--> REGR_INTERCEPT(cost, pain), REGR_SLOPE(cost, pain): 7500000 7500000 7500000 | 15000000 √112500000000000 7500000

-- regression / join on owner / where: Age and cost, of smokers
SELECT REGR_R2(v.cost, p.age) AS x FROM people p JOIN visits v ON p.person_id = v.person_id WHERE p.smoker;
--> REGR_R2(v.cost, p.age): 27000000000000 27000000000000 27000000000000 | 54000000000000 √1458000000000000000000000000 27000000000000

-- geometric mean / one row / plain: The geometric mean of age, from the first year on
SELECT GEOMEAN(age + 1) FROM people;
--> GEOMEAN(age + 1): 4795793 4795793 4795793 | 9591586 √45999260997698 4795793

-- geometric mean / several rows / group category: What a visit costs at each clinic, as a factor
SELECT clinic, GEOMETRIC_MEAN(GREATEST(cost, 1)) AS x FROM visits GROUP BY ALL;
--> GEOMETRIC_MEAN(GREATEST(cost, 1)): 20723274 20723274 20723274 | 41446548 √858908170558152 20723274

-- geometric mean / one row / beside a mean of logarithms: The same number, told twice
SELECT GEOMEAN(age + 1) AS g, AVG(LN(age + 1)) AS l FROM people;
--> GEOMEAN(age + 1), AVG(LN(age + 1)): 4795793 4795793 4795793 | 9591586 √45999260997698 4795793

-- harmonic mean / one row / plain: The harmonic mean of age, from the first year on
SELECT HARMONIC_MEAN(age + 1) FROM people;
--> HARMONIC_MEAN(age + 1): 991735537 991735537 991735537 | 1983471074 √1967078750697356738 991735537

-- harmonic mean / several rows / group category: What a visit costs at each clinic, by how many a coin would buy
SELECT clinic, HARMONIC_MEAN(GREATEST(cost, 1)) AS x FROM visits GROUP BY clinic;
--> HARMONIC_MEAN(GREATEST(cost, 1)): 2997000000 2997000000 2997000000 | 5994000000 √17964018000000000000 2997000000

-- ===== what is picked =====

-- median / one row / plain: The median age
SELECT MEDIAN(age) FROM people;
--> MEDIAN(age): rank 1/2 | rank 1

-- median / one row / fine grid: The median income, to the cent
SELECT MEDIAN(income) FROM people;
--> MEDIAN(income): rank 1/2 | rank 1

-- median / several rows / group category: The median cost of a visit at each clinic
SELECT clinic, MEDIAN(cost) AS cost FROM visits GROUP BY clinic;
--> MEDIAN(cost): rank 3/2 | rank 3

-- median / join on owner / where: The median cost of women's visits
SELECT MEDIAN(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id WHERE p.sex = 'F';
--> MEDIAN(v.cost): rank 3/2 | rank 3

-- quantile / one row / plain: What do the best paid tenth earn at least?
SELECT QUANTILE_CONT(income, 0.9) AS top_tenth FROM people;
--> QUANTILE_CONT(income, 0.9): rank 9/10 | rank 1

-- quantile / several rows / filter: Nine of ten visits at the harbor cost at most
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY cost) FILTER (WHERE clinic = 'Harbor') AS cost FROM visits;
--> QUANTILE_DISC(cost, 0.9 ORDER BY cost) FILTER(WHERE clini...: rank 27/10 | rank 3

-- quantiles / one row / group boolean: Quartiles of age, for smokers and others
SELECT smoker, QUANTILE_DISC(age, [0.25, 0.5, 0.75]) AS quartiles FROM people GROUP BY smoker;
--> QUANTILE_DISC(age, [0.25, 0.5, 0.75]): rank 3/4 | rank 3/2

-- quantiles / several rows / plain: Deciles of the day
SELECT QUANTILE_DISC(day, [0.1, 0.5, 0.9]) AS days FROM visits;
--> QUANTILE_DISC(day, [0.1, 0.5, 0.9]): rank 27/10 | rank 3

-- minimum / one row / plain: About the youngest
SELECT MIN(age) FROM people;
--> MIN(age): rank 1 | rank 1

-- maximum / several rows / group category: About the dearest visit at each clinic
SELECT clinic, MAX(cost) AS cost FROM visits GROUP BY clinic;
--> MAX(cost): rank 3 | rank 6

-- mode / one row / plain: The most common diagnosis
SELECT MODE(diagnosis) FROM people;
--> MODE(diagnosis): rank 1 | rank 1

-- mode / several rows / group month: The busiest clinic of each month
SELECT month(day) AS month, MODE(clinic) AS clinic FROM visits GROUP BY month;
--> MODE(clinic): rank 3 | rank 3

-- ===== many at once =====

-- several / one row / group category: A whole table of figures
SELECT sex, COUNT(*) AS people, AVG(age) AS age, SUM(income) AS income, MEDIAN(age) AS median_age
FROM people GROUP BY sex;
--> AVG(age), COUNT(*): 120 120 120 | 240 √28800 120
--> SUM(income): 20000000 20000000 20000000 | 40000000 √800000000000000 20000000
--> MEDIAN(age): rank 1/2 | rank 1

-- several / several rows / outer arithmetic: Two measured blocks, divided
SELECT v.n / p.n AS visits_per_person FROM (SELECT COUNT(*) AS n FROM visits) AS v, (SELECT COUNT(*) AS n FROM people) AS p;
--> COUNT(*): 3 3 3 | 3 3 3
--> COUNT(*): 1 1 1 | 1 1 1

-- several / WITH / two blocks joined: Costs and tests at each clinic
WITH a AS (SELECT clinic, SUM(cost) AS cost FROM visits GROUP BY clinic),
     b AS (SELECT v.clinic, COUNT(*) AS tests FROM visits v JOIN labs l ON v.visit_id = l.visit_id GROUP BY v.clinic)
SELECT a.clinic, a.cost, b.tests, c.town FROM a JOIN b ON a.clinic = b.clinic JOIN clinics c ON c.clinic = a.clinic;
--> SUM(cost): 300000 300000 300000 | 600000 √180000000000 300000
--> COUNT(*): 12 12 12 | 24 √288 12

-- nothing / public alone / plain: What is public is free
SELECT town, SUM(beds) AS beds FROM clinics GROUP BY town ORDER BY town;

-- ===== other ways of writing =====

-- count / one row / group by all: GROUP BY ALL is by what is not aggregated
SELECT sex, smoker, COUNT(*) AS people FROM people GROUP BY ALL;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group by nothing: GROUP BY () is one group
SELECT COUNT(*) AS people FROM people GROUP BY ();
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / constant key: A label that is the same for everybody
SELECT 'all' AS label, sex, COUNT(*) FROM people GROUP BY label, sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / schema: The only schema there is
SELECT COUNT(main.people.age) AS n FROM main.people;
--> COUNT(people.age): 1 1 1 | 1 1 1

-- count / one row / rows of values: Pairs of columns compared at once
SELECT COUNT(*) FROM people WHERE (sex, smoker) IN (('F', TRUE), ('M', FALSE));
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / any of a list: A list in brackets
SELECT COUNT(*) FROM people WHERE diagnosis = ANY (['flu', 'cold']) AND list_contains([1, 2, 3], age);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / text functions: Who lives where, by parts of a text
SELECT COUNT(*) FROM people WHERE contains(zip, 'a') OR ends_with(zip, 'b') OR strpos(zip, 'A') = 1
OR replace(zip, 'A', 'a') = 'ab' OR split_part(zip, 'b', 1) = 'A';
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / flag as text: A boolean written as a text
SELECT COUNT(*) FROM people WHERE smoker = 'true';
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / group replaced: Diagnoses under other names
SELECT replace(diagnosis, 'flu', 'influenza') AS d, COUNT(*) FROM people GROUP BY d;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group joined text: Sex and diagnosis in one text, without the NULLs
SELECT concat_ws('/', sex, diagnosis) AS k, COUNT(*) FROM people GROUP BY k;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group padded: Sex, three letters wide
SELECT lpad(sex, 3, '.') AS s, COUNT(*) FROM people GROUP BY s;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group position: Where the o stands in a diagnosis
SELECT position('o' IN diagnosis) AS p, COUNT(*) FROM people GROUP BY p;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group formatted month: Births by month, as a text
SELECT strftime(born, '%Y-%m') AS month, COUNT(*) FROM people GROUP BY month ORDER BY month;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group month name: Births by the month's name
SELECT monthname(born) AS month, COUNT(*) FROM people GROUP BY month;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / group decade: Births by decade
SELECT extract(decade FROM born) AS d, COUNT(*) FROM people GROUP BY d;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / where months: Who was born within three months of a day
SELECT COUNT(*) FROM people WHERE born - INTERVAL 3 MONTH < DATE '1990-05-31' AND born > DATE '1991-03-31' - INTERVAL '1 year';
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / group moved date: A month after birth
SELECT date_trunc('month', born + INTERVAL 1 MONTH) AS m, COUNT(*) FROM people GROUP BY m;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / several rows / group week day: Visits by day of the week
SELECT dayname(day) AS weekday, COUNT(*) FROM visits GROUP BY weekday;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / several rows / where hours: Seen in the first hours
SELECT COUNT(*) FROM visits WHERE seen - INTERVAL 90 MINUTE < TIMESTAMP '2024-01-01 12:00:00';
--> COUNT(*): 3 3 3 | 3 3 3

-- count / several rows / group moved timestamp: A month later, by day
SELECT date_trunc('day', seen + INTERVAL 1 MONTH) AS d, COUNT(*) FROM visits GROUP BY d;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join on values / group public: A table that is written out
SELECT m.label, COUNT(*) FROM people p JOIN (VALUES ('F', 'female'), ('M', 'male')) AS m(code, label) ON p.sex = m.code
GROUP BY m.label;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / cross join on values / plain: Every person twice
SELECT COUNT(*) FROM people, (VALUES (1), (2)) AS v(x);
--> COUNT(*): 2 2 2 | 2 2 2

-- count / renamed columns / group category: Names behind WITH and behind an alias
WITH t(s, years) AS (SELECT sex, age FROM people) SELECT u.a, SUM(u.b) FROM (SELECT s, years FROM t) AS u(a, b) GROUP BY u.a;
--> SUM(u.b): 120 120 120 | 240 √28800 120

-- count / all columns but some / where: A star with exceptions
SELECT COUNT(*) FROM (SELECT * EXCLUDE (zip, income) FROM people) AS t WHERE age > 30;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / public scalar / where: A number out of a public table
SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(low) FROM bands);
--> COUNT(*): 1 1 1 | 1 1 1

-- count of x / one row / owner in a case: Women, counted by their identifier
SELECT COUNT(CASE WHEN sex = 'F' THEN person_id END) AS women FROM people;
--> COUNT(CASE WHEN sex = 'F' THEN person_id END): 1 1 1 | 1 1 1

-- persons / several rows / owner in a case: People with a dear visit, beside all who came
SELECT clinic, COUNT(DISTINCT CASE WHEN cost > 500 THEN person_id END) AS dear, COUNT(DISTINCT person_id) AS people
FROM visits GROUP BY clinic;
--> COUNT(DISTINCT CASE WHEN cost > 500 THEN person_id END): 3 √3 1 | 3 √3 1
--> COUNT(DISTINCT person_id): 3 √3 1 | 3 √3 1

-- distinct values / several rows / pairs: Pairs of clinic and day that occur
SELECT COUNT(DISTINCT (clinic, day)) FROM visits;
--> COUNT(DISTINCT (clinic, day)): 3 3 3 | 3 3 3

-- sum / one row / quotient to integer: Half years, to the even number
SELECT SUM(CAST(age / 2 AS INTEGER)) AS halves FROM people;
--> SUM(CAST(age / 2 AS INT)): 60 60 60 | 60 60 60

-- covariance / one row / beside correlation: Both of the same columns
SELECT CORR(age, balance) AS r, COVAR_POP(age, balance) AS c FROM people;
--> CORR(age, balance): 129600000000 129600000000 129600000000 | 259200000000 √33592320000000000000000 129600000000
--> COVAR_POP(age, balance): 360000 360000 360000 | 720000 √259200000000 360000

-- median / one row / group text: The median age in each quarter
SELECT zip, MEDIAN(age) FROM people GROUP BY zip;
--> keys: 1 | 2
--> MEDIAN(age): rank 1/2 | rank 1

-- maximum / several rows / group text: The dearest visit by note
SELECT note, MAX(cost) FROM visits GROUP BY note;
--> keys: 3 | 6
--> MAX(cost): rank 3 | rank 6

-- quantiles / several rows / group text and category: Quartiles of pain by note and clinic
SELECT note, clinic, QUANTILE_CONT(pain, [0.25, 0.5, 0.75]) FROM visits GROUP BY note, clinic;
--> keys: 3 | 6
--> QUANTILE_CONT(pain, [0.25, 0.5, 0.75]): rank 9/4 | rank 9/2

-- mode / several rows / group text: The usual clinic by note
SELECT note, MODE(clinic) FROM visits GROUP BY note;
--> keys: 3 | 6
--> MODE(clinic): rank 3 | rank 3

-- mode / one row / within group: The spelling of the standard
SELECT MODE() WITHIN GROUP (ORDER BY diagnosis) FROM people;
--> MODE(diagnosis): rank 1 | rank 1

-- quantile / one row / element: The second of three
SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75])[2] AS middle FROM people;
--> QUANTILE_CONT(age, [0.25, 0.5, 0.75]): rank 3/4 | rank 1

-- ===== more of each person's own rows =====

-- mean / per person / filter: How many expensive visits has a patient?
SELECT AVG(n) FROM (SELECT person_id, COUNT(*) FILTER (WHERE cost > 100) AS n FROM visits GROUP BY person_id) AS t;
--> AVG(n): 3 3 3 | 6 √18 3

-- sum / per person / filter: What did patients leave at the Hill?
SELECT SUM(s) FROM (SELECT person_id, SUM(cost) FILTER (WHERE clinic = 'Hill') AS s FROM visits GROUP BY person_id) AS t;
--> SUM(s): 300000 300000 300000 | 300000 300000 300000

-- count / per person / count of a column: Who never said how much it hurt?
SELECT COUNT(*) FROM (SELECT person_id, COUNT(pain) AS n FROM visits GROUP BY person_id) AS t WHERE n = 0;
--> COUNT(*): 1 1 1 | 1 1 1

-- sum / per person / count if: Expensive visits that hurt
SELECT SUM(n) FROM (SELECT person_id, COUNT_IF(cost > 100) FILTER (WHERE pain > 0) AS n FROM visits GROUP BY person_id) AS t;
--> SUM(n): 3 3 3 | 3 3 3

-- sum / per person / sums above zero: A visit costs at least its fee
SELECT SUM(n) FROM (SELECT person_id, SUM(cost + 1) AS n FROM visits GROUP BY person_id) AS t;
--> SUM(n): 300300 300300 300300 | 300300 300300 300300

-- sum / per person / sums below zero: And is lost to the insurer
SELECT SUM(n) FROM (SELECT person_id, SUM(0 - cost - 1) AS n FROM visits GROUP BY person_id) AS t;
--> SUM(n): 300300 300300 300300 | 300300 300300 300300

-- sum / per person / key computed: Visits of each half of the year, which is written again
SELECT half, SUM(n) FROM (
  SELECT person_id, month(day) // 7 + 1 AS half, COUNT(*) AS n FROM visits GROUP BY person_id, month(day) // 7
) AS t GROUP BY half;
--> SUM(n): 9 9 9 | 18 √162 9

-- mean / window / share of the own sum: How much of a year's cost is one visit?
SELECT AVG(cost / total) FROM (SELECT cost, SUM(cost) OVER (PARTITION BY person_id) AS total FROM visits) AS t;
--> AVG(cost / total): 300000000003 300000000003 300000000003 | 600000000006 √180000000003600000000018 300000000003

-- count / window / own count: Visits of people who come often
SELECT n, COUNT(*) FROM (SELECT COUNT(pain) OVER (PARTITION BY person_id) AS n FROM visits) AS t GROUP BY n;
--> COUNT(*): 3 3 3 | 6 √18 3

-- sum / window / own minimum: How much dearer than the cheapest?
SELECT SUM(cost - low) FROM (SELECT cost, MIN(cost) OVER (PARTITION BY person_id, clinic) AS low FROM visits) AS t;
--> SUM(cost - low): 300000 300000 300000 | 600000 600000 600000

-- ===== more public tables =====

-- count / join public / public first: The public table may stand first
SELECT c.town, COUNT(*) FROM clinics AS c JOIN visits AS v ON v.clinic = c.clinic GROUP BY c.town;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / join public / no public rows: An outer join with a table that is empty
SELECT COUNT(*), COUNT(c.town) FROM visits AS v LEFT JOIN (SELECT * FROM clinics WHERE beds > 999) AS c ON v.clinic = c.clinic;
--> COUNT(c.town), COUNT(*): 3 3 3 | 6 √18 3

-- count / join public / public keys all NULL: A key that nothing equals
SELECT COUNT(*), COUNT(w.ward) FROM visits AS v LEFT JOIN (SELECT * FROM wards WHERE clinic IS NULL) AS w ON v.clinic = w.clinic;
--> COUNT(w.ward), COUNT(*): 3 3 3 | 6 √18 3

-- sum / join public / computed weights: Decimals, dates, flags and moments of a table made for the question
SELECT c.big, SUM(c.weight * v.cost) FROM visits AS v
JOIN (SELECT clinic, beds > 100 AS big, 2.75 AS weight, DATE '2024-02-03' AS since, TIMESTAMP '2024-01-02 03:04:05' AS at FROM clinics) AS c
ON v.clinic = c.clinic WHERE v.day > c.since AND v.seen < c.at GROUP BY c.big;
--> SUM(c.weight * v.cost): 82500000 82500000 82500000 | 165000000 √13612500000000000 82500000

-- count / join public / equal floats: Floats are equal on a grid, so a row may meet several
SELECT COUNT(*) FROM visits AS v JOIN (SELECT CAST(beds AS DOUBLE) AS f FROM clinics) AS c ON v.cost = c.f;
--> COUNT(*): 9 9 9 | 9 9 9

-- count / several rows / in no list: None of no clinics
SELECT COUNT(*) FROM visits WHERE clinic NOT IN (SELECT clinic FROM clinics WHERE beds > 999);
--> COUNT(*): 3 3 3 | 3 3 3

-- count / one row / rows compared: Ages and diagnoses together, with one that is missing
SELECT COUNT(*) FROM people WHERE (age, diagnosis) IN ((0, 'flu'), (120, NULL)) OR (sex, smoker) <> ('F', TRUE);
--> COUNT(*): 1 1 1 | 1 1 1

-- quantile / one row / descending: The oldest quarter begins at
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) FROM people;
--> QUANTILE_CONT(age, 0.25 ORDER BY age DESC): rank 3/4 | rank 1

-- count / several rows / moments chosen: The later of two moments
SELECT COUNT(*) FROM visits WHERE GREATEST(seen, TIMESTAMP '2024-01-02 12:00:00') > COALESCE(seen, TIMESTAMP '2024-01-01 00:00:00');
--> COUNT(*): 3 3 3 | 3 3 3

-- ===== after noise =====

-- count / one row / arithmetic outside, again: Roots and logarithms of counts, which are NULL where noise makes them less than nothing
SELECT sex, SQRT(COUNT(*)) AS a, LN(COUNT(*)) AS b, LOG(2, COUNT(*)) AS c, LOG(COUNT(*)) AS d FROM people GROUP BY sex;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / arithmetic outside, a third time: Remainders, limits and a leading zero
SELECT sex, n % 7 AS rest, n // 7 AS weeks, CLAMP(n, 0, 10) AS at_most, LPAD(CAST(n AS VARCHAR), 5, '0') AS code
FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / distinct after: Are some of them many?
SELECT DISTINCT n > 5 AS many FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / outer select, again: A count beside another one, and conditions on both
SELECT (SELECT COUNT(*) FROM people) AS people, n FROM (SELECT COUNT(*) AS n FROM visits) AS t WHERE n >= (SELECT COUNT(*) FROM people WHERE age > 200);
--> COUNT(*): 3 3 3 | 3 3 3
--> COUNT(*): 1 1 1 | 1 1 1
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / outer select, a third time: Two results side by side, and a public table
SELECT t.sex, n, m, band FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t
JOIN (SELECT sex, AVG(age) AS m FROM people GROUP BY sex) AS u USING (sex) LEFT JOIN bands ON n = low;
--> COUNT(*): 1 1 1 | 2 √2 1
--> AVG(age): 120 120 120 | 240 √28800 120

-- count / one row / outer select, a fourth time: Two results under each other, in order
SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT clinic, COUNT(*) FROM visits GROUP BY clinic ORDER BY k DESC;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / one row / outer select, a fifth time: Sums of such a list, by their new names
SELECT k AS kind, SUM(n) AS s FROM (
  SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT 'F', COUNT(*) FROM visits
) AS t GROUP BY kind HAVING s > (SELECT -1) ORDER BY kind;
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 3 3 3 | 3 3 3

-- ===== keys of many values =====

-- count / one row / group cents: Incomes that several people have
SELECT income, COUNT(*) AS people FROM people GROUP BY income;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / several rows / group moments: Moments at which several people were seen, with equal pain, at one clinic
SELECT seen, clinic, pain, COUNT(*) AS visits FROM visits GROUP BY seen, clinic, pain;
--> keys: 3 | 6
--> COUNT(*): 3 3 3 | 6 √18 3

-- mode / one row / flags: Do most of them smoke?
SELECT sex, MODE(smoker) FROM people GROUP BY sex;
--> MODE(smoker): rank 1 | rank 1

-- count / one row / constants counted: Rows, by the count of anything
SELECT COUNT(5) FROM people;
--> COUNT(5): 1 1 1 | 1 1 1

-- distinct values / one row / case: Sexes of grown-ups
SELECT COUNT(DISTINCT CASE WHEN age >= 18 THEN sex END) FROM people;
--> COUNT(DISTINCT CASE WHEN age >= 18 THEN sex END): 1 1 1 | 1 1 1

-- count / one row / in brackets: A question in brackets
(SELECT COUNT(*) FROM people);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / one row / window over groups, again: The largest group alone
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / one row / outer select, a sixth time: Only what both lists have, and only what the second has not
SELECT sex FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t INTERSECT SELECT 'F';
--> COUNT(*): 1 1 1 | 2 √2 1

-- policy: census

-- count / residents / plain: How many live here?
SELECT COUNT(*) AS population FROM residents;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents / group category: Residents of each region
SELECT region, COUNT(*) AS residents FROM residents GROUP BY region;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group three keys: The census table of sex, region and rooms
SELECT sex, region, rooms, COUNT(*) AS residents FROM residents GROUP BY sex, region, rooms;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group bins: Five-year age groups
SELECT age // 5 * 5 AS from_age, COUNT(*) AS residents FROM residents GROUP BY from_age;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group year: In which year did people move here?
SELECT year(moved) AS year, COUNT(*) FROM residents WHERE moved IS NOT NULL GROUP BY year;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group quarter: Moves by quarter, and those who never moved
SELECT date_trunc('quarter', moved) AS quarter, COUNT(*) FROM residents GROUP BY quarter;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group text: Which languages are spoken at home?
SELECT tongue, COUNT(*) AS speakers FROM residents GROUP BY tongue HAVING COUNT(*) >= 2;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group text expression: Languages, whatever the letters
SELECT upper(tongue) AS tongue, COUNT(*) AS speakers FROM residents GROUP BY upper(tongue);
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group integer category: Residents by number of rooms
SELECT rooms, COUNT(*) AS residents FROM residents GROUP BY rooms;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / where integer category: Who lives in three rooms or more?
SELECT COUNT(*) FROM residents WHERE rooms >= 3;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents / group concatenation: Region and sex in one word
SELECT region || '/' || sex AS cell, COUNT(*) FROM residents GROUP BY cell;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group prefix: Regions by first letter
SELECT substr(region, 1, 1) AS letter, COUNT(*) FROM residents GROUP BY letter;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group length: Regions by the length of their name
SELECT length(region) AS letters, COUNT(*) FROM residents GROUP BY letters;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / group two expressions: Bins of two numbers
SELECT age // 25 AS a, hours // 20 AS h, COUNT(*) FROM residents GROUP BY a, h;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / cube: Sex and region with all margins of the table
SELECT sex, region, COUNT(*) AS residents FROM residents GROUP BY CUBE (sex, region);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / rollup, two keys: Regions within sexes, with totals
SELECT sex, region, COUNT(*) AS residents FROM residents GROUP BY ROLLUP (sex, region);
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / grouping sets with total: By region, by rooms, and all
SELECT region, rooms, COUNT(*) AS residents FROM residents GROUP BY GROUPING SETS ((region), (rooms), ());
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): – | 1 1 1

-- count / residents / percent of all: Each region's share
SELECT region, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM residents GROUP BY region;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / distinct after: How many different counts are there?
SELECT COUNT(DISTINCT n) AS different FROM (SELECT region, COUNT(*) AS n FROM residents GROUP BY region) AS t;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents / in list: Three ages
SELECT COUNT(*) FROM residents WHERE age IN (1, 2, 99) AND region NOT IN ('north', 'west');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents / not between: Children and the old
SELECT COUNT(*) FROM residents WHERE age NOT BETWEEN 18 AND 64;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents / is distinct from: Those who do not work full time, or of whom we do not know
SELECT COUNT(*) FROM residents WHERE hours IS DISTINCT FROM 40;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents / modulo: Round birthdays
SELECT COUNT(*) FROM residents WHERE age % 10 = 0 AND age > 0;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents join jobs / group two keys: Sectors by sex
SELECT r.sex, j.sector, COUNT(*) AS jobs
FROM residents r JOIN jobs j ON r.resident_id = j.resident_id GROUP BY r.sex, j.sector;
--> COUNT(*): 2 2 2 | 4 √8 2

-- count / jobs / group computed boolean: Well-paid jobs
SELECT pay > 5000 AS well_paid, COUNT(*) AS jobs FROM jobs GROUP BY well_paid;
--> COUNT(*): 2 2 2 | 4 √8 2

-- count / jobs per person / group number: How many jobs do people have?
SELECT jobs, COUNT(*) AS people FROM (SELECT resident_id, COUNT(*) AS jobs FROM jobs GROUP BY resident_id) AS t
GROUP BY jobs;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / jobs per person / two aggregates: People with two jobs who earn little
SELECT COUNT(*) FROM (SELECT resident_id, COUNT(*) AS n, SUM(pay) AS pay FROM jobs GROUP BY resident_id) AS t
WHERE n = 2 AND pay < 1000;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents without jobs / group category: The jobless, by region
SELECT region, COUNT(*) AS jobless FROM residents
WHERE age BETWEEN 18 AND 64 AND resident_id NOT IN (SELECT resident_id FROM jobs) GROUP BY region;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents with some job / where: Who works for the state?
SELECT COUNT(*) FROM residents r
WHERE EXISTS (SELECT 1 FROM jobs j WHERE j.resident_id = r.resident_id AND j.sector = 'state');
--> COUNT(*): 1 1 1 | 1 1 1

-- count / residents join public / group public: Residents by division
SELECT g.division, COUNT(*) AS residents FROM residents r JOIN regions g ON r.region = g.region GROUP BY g.division;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / residents join public / density: People per area
SELECT g.region, COUNT(*) / MAX(g.area) AS density
FROM (SELECT region, COUNT(*) AS n FROM residents GROUP BY region) AS r JOIN regions g ON r.region = g.region GROUP BY g.region;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / jobs join public / where public boolean: Jobs in public service
SELECT COUNT(*) FROM jobs j JOIN sectors s ON j.sector = s.sector WHERE s.public;
--> COUNT(*): 2 2 2 | 2 2 2

-- count / jobs left join residents / group nullable: Jobs by the region of whoever has them
SELECT r.region, COUNT(*) FROM jobs j LEFT JOIN residents r ON j.resident_id = r.resident_id GROUP BY r.region;
--> COUNT(*): 2 2 2 | 4 √8 2

-- count / latest job / group category: In which sector did people begin last?
SELECT sector, COUNT(*) FROM (SELECT sector FROM jobs
QUALIFY ROW_NUMBER() OVER (PARTITION BY resident_id ORDER BY started DESC) = 1) AS t GROUP BY sector;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / first sector by arg_min / group category: In which sector did people begin first?
SELECT sector, COUNT(*) FROM (SELECT resident_id, ARG_MIN(sector, started) AS sector FROM jobs GROUP BY resident_id) AS t
GROUP BY sector;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / any remote job / group boolean: Does anybody's job allow to stay at home?
SELECT remote, COUNT(*) FROM (SELECT resident_id, BOOL_OR(remote) AS remote FROM jobs GROUP BY resident_id) AS t
GROUP BY remote;
--> COUNT(*): 1 1 1 | 2 √2 1

-- persons / jobs / group category: People in each sector
SELECT sector, COUNT(DISTINCT resident_id) AS people FROM jobs GROUP BY sector;
--> COUNT(DISTINCT resident_id): 2 √2 1 | 4 2 1

-- persons / jobs / group year: People who began in each year
SELECT year(started) AS year, COUNT(DISTINCT resident_id) AS people FROM jobs GROUP BY year;
--> COUNT(DISTINCT resident_id): 2 √2 1 | 4 2 1

-- distinct values / jobs / group category: Different wages in each sector
SELECT sector, COUNT(DISTINCT pay) AS wages FROM jobs GROUP BY sector;
--> COUNT(DISTINCT pay): 2 2 2 | 4 √8 2

-- distinct values / residents / plain: How many languages?
SELECT COUNT(DISTINCT tongue) FROM residents;
--> COUNT(DISTINCT tongue): 1 1 1 | 1 1 1

-- sum / residents / plain: Hours worked by all
SELECT SUM(hours) FROM residents;
--> SUM(hours): 80 80 80 | 80 80 80

-- sum / residents / integer category: All rooms that somebody lives in
SELECT SUM(rooms) AS rooms, COUNT(rooms) AS known FROM residents;
--> SUM(rooms): 4 4 4 | 4 4 4
--> COUNT(rooms): 1 1 1 | 1 1 1

-- sum / residents / product: What is earned in a week
SELECT region, SUM(hours * wage) AS earned FROM residents GROUP BY region;
--> SUM(hours * wage): 80000 80000 80000 | 160000 √12800000000 88000

-- sum / residents / round: Wages, rounded to tens
SELECT SUM(ROUND(wage, -1)) FROM residents;
--> SUM(ROUND(wage, -1)): 50 50 50 | 55 55 55

-- sum / residents / floor: Whole wages
SELECT SUM(FLOOR(wage)) AS low, SUM(CEIL(wage)) AS high FROM residents;
--> SUM(FLOOR(wage)): 500 500 500 | 550 550 550
--> SUM(CEIL(wage)): 500 500 500 | 550 550 550

-- sum / residents / least: Hours up to a full week
SELECT SUM(LEAST(hours, 40)) AS up_to_40, SUM(GREATEST(hours - 40, 0)) AS extra FROM residents;
--> SUM(LEAST(hours, 40)): 40 40 40 | 40 40 40
--> SUM(GREATEST(hours - 40, 0)): 40 40 40 | 40 40 40

-- sum / residents / nullif: Wages that are not zero
SELECT SUM(NULLIF(wage, 0)) FROM residents;
--> SUM(NULLIF(wage, 0)): 1000 1000 1000 | 1100 1100 1100

-- sum / residents / coalesce: Hours, none where none are known
SELECT region, SUM(COALESCE(hours, 0)) AS hours FROM residents GROUP BY region;
--> SUM(COALESCE(hours, 0)): 80 80 80 | 160 √12800 80

-- sum / residents / power: Squares of ages
SELECT SUM(POWER(age, 2)) AS squares FROM residents;
--> SUM(POWER(age, 2)): 9801 9801 9801 | 9801 9801 9801

-- sum / residents / root: Roots of ages
SELECT SUM(SQRT(age)) AS roots FROM residents;
--> SUM(SQRT(age)): 9949876 9949876 9949876 | 9949877 9949877 9949877

-- sum / residents / logarithm: Logarithms of ages
SELECT SUM(LN(age)) AS logs FROM residents;
--> SUM(LN(age)): 4595121 4595121 4595121 | 4595122 4595122 4595122

-- sum / residents / public float: The area around everybody
SELECT SUM(g.area) AS area FROM residents r JOIN regions g ON r.region = g.region;
--> SUM(g.area): 20250000 20250000 20250000 | 20250000 20250000 20250000

-- sum, both signs / jobs / plain: All pay, losses too
SELECT SUM(pay) FROM jobs;
--> SUM(pay): 18000 18000 18000 | 20000 20000 20000

-- sum, both signs / jobs / group category: Pay by sector
SELECT sector, SUM(pay) AS pay FROM jobs GROUP BY sector;
--> SUM(pay): 18000 18000 18000 | 36000 √648000000 20000

-- sum, both signs / jobs / cast: Pay in thousands
SELECT SUM(CAST(pay / 1000 AS DECIMAL(10, 1))) AS thousands FROM jobs;
--> SUM(CAST(pay / 1000 AS DECIMAL(10, 1))): 180 180 180 | 200 200 200

-- sum, both signs / residents join jobs / difference: Pay beside wage
SELECT SUM(j.pay - r.wage * 10) AS gap FROM residents r JOIN jobs j ON r.resident_id = j.resident_id;
--> SUM(j.pay - r.wage * 10): 19000 19000 19000 | 31000 31000 31000

-- sum, both signs / jobs per person / plain: What people earn in all their jobs, from -500 to 5000
SELECT SUM(CLAMP(pay, -500, 5000)) FROM (SELECT resident_id, SUM(pay) AS pay FROM jobs GROUP BY resident_id) AS t;
--> SUM(CLAMP(pay, -500, 5000)): 5000 5000 5000 | 5500 5500 5500

-- mean / residents / plain: The mean age of the population
SELECT AVG(age) FROM residents;
--> AVG(age): 99 99 99 | 198 √19602 99

-- mean / residents / group two keys: Mean hours by sex and region
SELECT sex, region, AVG(hours) AS hours, COUNT(*) AS residents FROM residents GROUP BY sex, region;
--> AVG(hours), COUNT(*): 80 80 80 | 160 √12800 80

-- mean / residents / by hand: A mean by hand is a mean
SELECT SUM(wage) / COUNT(wage) AS mean FROM residents;
--> SUM(wage), COUNT(wage): 1100 1100 1100 | 2200 √2420000 1100

-- mean / residents / case inside: The share of full-time workers
SELECT AVG(CASE WHEN hours >= 35 THEN 1.0 ELSE 0 END) AS full_time FROM residents;
--> AVG(CASE WHEN hours >= 35 THEN 1.0 ELSE 0 END): 1 1 1 | 2 √2 1

-- mean / jobs / group category: Mean pay by sector
SELECT sector, AVG(pay) AS pay FROM jobs GROUP BY sector ORDER BY pay DESC;
--> AVG(pay): 20000 20000 20000 | 40000 √800000000 20000

-- mean / jobs / years ago: How long ago did people begin?
SELECT AVG(DATE_DIFF('year', started, DATE '2023-12-31')) AS years FROM jobs;
--> AVG(DATE_DIFF('YEAR', started, CAST('2023-12-31' AS DATE))): 46 46 46 | 92 √4232 46

-- mean / moved / days: Days in town
SELECT AVG(DATE '2023-12-31' - moved) AS days FROM residents;
--> AVG(CAST('2023-12-31' AS DATE) - moved): 1460 1460 1460 | 2920 √4263200 1460

-- variance / residents / group category: Variance of hours by region
SELECT region, VARIANCE(hours) AS spread FROM residents GROUP BY region;
--> VARIANCE(hours): 6400 6400 6400 | 12800 √81920000 6400

-- deviation / residents / plain: Deviation of wages
SELECT STDDEV(wage) FROM residents;
--> STDDEV(wage): 1210000 1210000 1210000 | 2420000 √2928200000000 1210000

-- correlation / residents / group category: Do the old work less, in each region?
SELECT region, CORR(age, hours) AS r FROM residents GROUP BY region;
--> CORR(age, hours): 62726400 62726400 62726400 | 125452800 √7869202513920000 62726400

-- covariance / jobs / plain: Pay and when it began, as years
SELECT COVAR_POP(pay, year(started)) FROM jobs;
--> COVAR_POP(pay, YEAR(started)): 460000 460000 460000 | 920000 √423200000000 460000

-- median / residents / group category: The median age of each region
SELECT region, MEDIAN(age) AS age FROM residents GROUP BY region;
--> MEDIAN(age): rank 1/2 | rank 1

-- median / jobs / plain: The median pay
SELECT MEDIAN(pay) FROM jobs;
--> MEDIAN(pay): rank 1 | rank 2

-- quantiles / residents / plain: Deciles of the wage
SELECT QUANTILE_CONT(wage, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) AS deciles FROM residents;
--> QUANTILE_CONT(wage, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0...: rank 9/10 | rank 1

-- maximum / residents / plain: About the oldest
SELECT MAX(age) FROM residents;
--> MAX(age): rank 1 | rank 1

-- mode / residents / group category: The usual number of rooms in each region
SELECT region, MODE(rooms) AS rooms FROM residents GROUP BY region;
--> MODE(rooms): rank 1 | rank 1

-- several / residents / wide: What goes into the yearbook
SELECT region, COUNT(*) AS residents, COUNT(*) FILTER (WHERE sex = 'female') AS women, AVG(age) AS age,
       COUNT(moved) AS movers FROM residents GROUP BY region ORDER BY region;
--> AVG(age), COUNT(*): 99 99 99 | 198 √19602 99
--> COUNT(moved): 1 1 1 | 2 √2 1
--> COUNT(*) FILTER(WHERE sex = 'female'): 1 1 1 | 2 √2 1

-- median / residents / numbers listed: How many rooms have they?
SELECT region, MEDIAN(rooms) FROM residents GROUP BY region;
--> MEDIAN(rooms): rank 1/2 | rank 1

-- policy: isp

-- count / sessions / plain: How many sessions were there?
SELECT COUNT(*) FROM sessions;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / sessions / group day: Sessions by day
SELECT CAST(began AS DATE) AS day, COUNT(*) AS sessions FROM sessions GROUP BY day ORDER BY day;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions / group hour of day: At what time of the day are people on line?
SELECT hour(began) AS hour, COUNT(*) AS sessions FROM sessions GROUP BY hour;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions / group integer category: Sessions by port
SELECT port, COUNT(*) AS sessions FROM sessions GROUP BY port;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions / group text: Which sites are visited?
SELECT site, COUNT(*) AS sessions FROM sessions GROUP BY site;
--> keys: 2 | 4
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions / group text and category: Sites by port
SELECT site, port, COUNT(*) AS sessions FROM sessions GROUP BY site, port;
--> keys: 2 | 4
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions / where timestamp: Sessions of the first hour
SELECT COUNT(*) FROM sessions WHERE began < TIMESTAMP '2024-01-01 01:00:00';
--> COUNT(*): 3 3 3 | 3 3 3

-- count / sessions / where range: Short sessions with much traffic
SELECT COUNT(*) FROM sessions WHERE seconds < 60 AND mb > 1000;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / sessions join public, several each / group public: Sessions by service
SELECT p.service, COUNT(*) AS sessions FROM sessions s JOIN ports p ON s.port = p.port GROUP BY p.service;
--> COUNT(*): 12 12 12 | 24 √288 12

-- count / sessions join subscribers / group category: Sessions by tariff
SELECT c.tariff, COUNT(*) AS sessions FROM subscribers c JOIN sessions s USING (sub_id) GROUP BY c.tariff;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / sessions and tickets / plain: Pairs of a session and a ticket of one subscriber
SELECT COUNT(*) FROM sessions s JOIN tickets t ON s.sub_id = t.sub_id;
--> COUNT(*): 6 6 6 | 6 6 6

-- count / subscribers / group nullable boolean: Who left?
SELECT churned, COUNT(*) FROM subscribers GROUP BY churned;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subscribers / group text: Subscribers per city
SELECT city, COUNT(*) AS subscribers FROM subscribers GROUP BY city ORDER BY subscribers DESC;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subscribers / group bins: Subscribers by speed, in hundreds
SELECT speed // 100 * 100 AS speed, COUNT(*) FROM subscribers GROUP BY 1;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subscribers / is true: Who left for sure, who stayed for sure
SELECT COUNT(*) FILTER (WHERE churned IS TRUE) AS gone, COUNT(*) FILTER (WHERE churned IS NOT TRUE) AS here FROM subscribers;
--> COUNT(*) FILTER(WHERE NOT churned IS TRUE), COUNT(*) FILTER(WHERE churned IS TRUE): 1 1 1 | 2 √2 1

-- count / subscribers / years: How old are contracts?
SELECT DATE_DIFF('year', since, DATE '2024-12-31') AS years, COUNT(*) FROM subscribers GROUP BY years;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subscribers with a session / where: Active subscribers of each tariff
SELECT tariff, COUNT(*) AS active FROM subscribers WHERE sub_id IN (SELECT sub_id FROM sessions WHERE mb > 0) GROUP BY tariff;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / subscribers without a ticket / plain: Who never complained?
SELECT COUNT(*) FROM subscribers c WHERE NOT EXISTS (SELECT 1 FROM tickets t WHERE t.sub_id = c.sub_id);
--> COUNT(*): 1 1 1 | 1 1 1

-- mean / per person / of numbers that are categories: The highest port of each subscriber
SELECT AVG(port) FROM (SELECT sub_id, MAX(port) AS port FROM sessions GROUP BY sub_id) AS t;
--> AVG(port): 421 421 421 | 842 √354482 421

-- count / heavy users / plain: Who transferred more than 15 GB?
SELECT COUNT(*) FROM (SELECT sub_id FROM sessions GROUP BY sub_id HAVING SUM(mb) > 15000) AS heavy;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / sites per subscriber / group number: How many sites do people visit?
SELECT sites, COUNT(*) FROM (SELECT sub_id, COUNT(DISTINCT site) AS sites FROM sessions GROUP BY sub_id) AS t GROUP BY sites;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / tickets / group nullable: How content are people?
SELECT stars, COUNT(*) AS tickets FROM tickets GROUP BY stars;
--> COUNT(*): 2 2 2 | 4 √8 2

-- count / tickets / group week: Tickets by week
SELECT date_trunc('week', opened) AS week, COUNT(*) AS tickets FROM tickets GROUP BY week;
--> COUNT(*): 2 2 2 | 4 √8 2

-- persons / sessions / group text: Subscribers per site
SELECT site, COUNT(DISTINCT sub_id) AS subscribers FROM sessions GROUP BY site;
--> keys: 2 | 4
--> COUNT(DISTINCT sub_id): 2 √2 1 | 4 2 1

-- persons / sessions / group text and category: Subscribers per site and port
SELECT site, port, COUNT(DISTINCT sub_id) AS subscribers FROM sessions GROUP BY site, port;
--> keys: 2 | 4
--> COUNT(DISTINCT sub_id): 3 √3 1 | 6 √6 1

-- persons / sessions / group day: Daily active subscribers
SELECT CAST(began AS DATE) AS day, COUNT(DISTINCT sub_id) AS active FROM sessions GROUP BY day;
--> COUNT(DISTINCT sub_id): 3 √3 1 | 6 √6 1

-- persons / tickets / where: Who is still waiting?
SELECT COUNT(DISTINCT sub_id) FROM tickets WHERE NOT solved;
--> COUNT(DISTINCT sub_id): 1 1 1 | 1 1 1

-- persons / sessions and tickets / group two keys: Ports and stars of the same people
SELECT s.port, t.stars, COUNT(DISTINCT s.sub_id) AS people
FROM sessions s JOIN tickets t ON s.sub_id = t.sub_id GROUP BY s.port, t.stars;
--> COUNT(DISTINCT s.sub_id): 6 √6 1 | 12 √12 1

-- sum / sessions / plain: All traffic
SELECT SUM(mb) FROM sessions;
--> SUM(mb): 30000 30000 30000 | 30000 30000 30000

-- sum / sessions / group text: Traffic by site
SELECT site, SUM(mb) AS mb, COUNT(*) AS sessions FROM sessions GROUP BY site;
--> keys: 2 | 4
--> SUM(mb), COUNT(*): 30000 30000 30000 | 60000 √1800000000 30000

-- sum / sessions / group day: Traffic by day
SELECT CAST(began AS DATE) AS day, SUM(mb) AS mb FROM sessions GROUP BY day;
--> SUM(mb): 30000 30000 30000 | 60000 √1800000000 30000

-- sum / sessions join public / product: What the minimum speed would cost
SELECT c.tariff, SUM(p.price) AS income FROM subscribers c JOIN tariffs p ON c.tariff = p.tariff GROUP BY c.tariff;
--> SUM(p.price): 50 50 50 | 100 √5000 50

-- sum / subscribers join public / difference: Speed above the promised minimum
SELECT SUM(c.speed - p.minimum) AS above FROM subscribers c JOIN tariffs p ON c.tariff = p.tariff;
--> SUM(c.speed - p.minimum): 990 990 990 | 1280 1280 1280

-- sum / tickets / integer category: All stars together
SELECT SUM(stars) AS stars, AVG(stars) AS mean FROM tickets;
--> SUM(stars), AVG(stars): 10 10 10 | 20 √200 10

-- sum, both signs / sessions / group integer category: Jitter by port
SELECT port, SUM(jitter) AS jitter FROM sessions GROUP BY port;
--> SUM(jitter): 240 240 240 | 480 480 480

-- sum, both signs / sessions / group two keys: Jitter by port and day
SELECT port, day(began) AS day, SUM(jitter) AS jitter FROM sessions GROUP BY port, day;
--> SUM(jitter): 240 240 240 | 480 480 480

-- mean / sessions / plain: How long is a session?
SELECT AVG(seconds) / 60 AS minutes FROM sessions;
--> AVG(seconds): 259200 259200 259200 | 518400 √134369280000 259200

-- mean / sessions / group integer category: Megabytes per session, by port
SELECT port, AVG(mb) AS mb FROM sessions GROUP BY port;
--> AVG(mb): 30000 30000 30000 | 60000 √1800000000 30000

-- mean / sessions / rate: Megabytes per second, by hand
SELECT SUM(mb) / SUM(seconds) AS rate FROM sessions;
--> SUM(mb): 30000 30000 30000 | 30000 30000 30000
--> SUM(seconds): 259200 259200 259200 | 259200 259200 259200

-- mean / sessions / modulo: Seconds beyond whole minutes
SELECT AVG(seconds % 60) AS rest FROM sessions;
--> AVG(seconds % 60): 177 177 177 | 354 √62658 177

-- mean / sessions per subscriber / group category: Traffic of a subscriber, by tariff
SELECT c.tariff, AVG(s.mb) AS mb FROM subscribers c
JOIN (SELECT sub_id, SUM(mb) AS mb FROM sessions GROUP BY sub_id) AS s ON c.sub_id = s.sub_id GROUP BY c.tariff;
--> AVG(s.mb): 30000 30000 30000 | 60000 √1800000000 30000

-- mean / gaps between sessions / plain: Hours from one session to the next
SELECT AVG(DATE_DIFF('hour', before, began)) AS hours
FROM (SELECT began, LAG(began) OVER (PARTITION BY sub_id ORDER BY began) AS before FROM sessions) AS t;
--> AVG(DATE_DIFF('HOUR', before, began)): 1008 1008 1008 | 2016 √2032128 1008

-- deviation / sessions / plain: Deviation of jitter
SELECT STDDEV(jitter) FROM sessions;
--> STDDEV(jitter): 76800 76800 76800 | 153600 √11796480000 76800

-- variance / sessions / group integer category: Variance of duration by port
SELECT port, VAR_POP(seconds) AS spread FROM sessions GROUP BY port;
--> VAR_POP(seconds): 22394880000 22394880000 22394880000 | 44789760000 √1003061300428800000000 22394880000

-- correlation / sessions / plain: Does a longer session move more?
SELECT CORR(seconds, mb) FROM sessions;
--> CORR(seconds, mb): 248832000000000000 248832000000000000 248832000000000000 | 497664000000000000 √123834728448000000000000000000000000 248832000000000000

-- median / sessions / plain: The median session
SELECT MEDIAN(seconds) FROM sessions;
--> MEDIAN(seconds): rank 3/2 | rank 3

-- quantile / sessions / group integer category: The longest tenth, by port
SELECT port, QUANTILE_DISC(seconds, 0.9) AS seconds FROM sessions GROUP BY port;
--> QUANTILE_DISC(seconds, 0.9): rank 27/10 | rank 27/5

-- mode / sessions / plain: The port that is used most
SELECT MODE(port) FROM sessions;
--> MODE(port): rank 3 | rank 3

-- several / subscribers / churn table: Churn by tariff
SELECT tariff, COUNT(*) AS subscribers, COUNT_IF(churned) AS gone, 1.0 * COUNT_IF(churned) / COUNT(*) AS rate
FROM subscribers GROUP BY tariff ORDER BY rate DESC;
--> COUNT_IF(churned), COUNT(*): 1 1 1 | 2 √2 1
--> COUNT_IF(churned): – | 2 √2 1

-- several / two results compared / plain: Sessions per subscriber of each tariff
SELECT a.tariff, b.n / a.n AS sessions_each FROM (SELECT tariff, COUNT(*) AS n FROM subscribers GROUP BY tariff) AS a
JOIN (SELECT tariff, COUNT(*) AS n FROM subscribers JOIN sessions USING (sub_id) GROUP BY tariff) AS b USING (tariff);
--> COUNT(*): 1 1 1 | 2 √2 1
--> COUNT(*): 3 3 3 | 6 √18 3

-- policy: school

-- count / pupils / plain: How many pupils are there?
SELECT COUNT(*) FROM pupils;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / pupils / group integer category: Pupils in each grade
SELECT grade, COUNT(*) AS pupils FROM pupils GROUP BY grade;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / pupils / group two keys: Who takes the bus, by grade?
SELECT grade, bus, COUNT(*) AS pupils FROM pupils GROUP BY grade, bus;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / pupils / group text: Pupils by street
SELECT street, COUNT(*) FROM pupils GROUP BY street;
--> keys: 1 | 2
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / pupils / group year: Years of birth
SELECT year(born) AS year, COUNT(*) FROM pupils GROUP BY year;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / marks / group two keys: Marks in each subject
SELECT subject, mark, COUNT(*) AS times FROM marks GROUP BY subject, mark ORDER BY subject, mark;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / marks / where: Failed in maths
SELECT COUNT(*) AS failed FROM marks WHERE subject = 'maths' AND mark >= 5;
--> COUNT(*): 3 3 3 | 3 3 3

-- count / marks / group month: Marks by month
SELECT year(day) AS year, month(day) AS month, COUNT(*) FROM marks GROUP BY year, month;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / marks join pupils / group two keys: Failed marks by grade and subject
SELECT p.grade, m.subject, COUNT(*) AS failed FROM pupils p JOIN marks m ON p.pupil_id = m.pupil_id
WHERE m.mark > 4 GROUP BY p.grade, m.subject;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / marks join public / group public boolean: Marks in major subjects
SELECT s.major, COUNT(*) FROM marks m JOIN subjects s ON m.subject = s.subject GROUP BY s.major;
--> COUNT(*): 3 3 3 | 6 √18 3

-- count / marks join public, several each / group public: Marks for each teacher of the subject
SELECT t.teacher, COUNT(*) AS marks FROM marks m JOIN teachers t ON m.subject = t.subject GROUP BY t.teacher;
--> COUNT(*): 6 6 6 | 12 √72 6

-- count / pupils who failed / group integer category: Pupils with a five or a six
SELECT grade, COUNT(*) AS pupils FROM pupils WHERE pupil_id IN (SELECT pupil_id FROM marks WHERE mark >= 5) GROUP BY grade;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / pupils always present / plain: Who was never absent?
SELECT COUNT(*) FROM pupils WHERE pupil_id NOT IN (SELECT pupil_id FROM absences);
--> COUNT(*): 1 1 1 | 1 1 1

-- count / pupils by best mark / group number: The best mark of each pupil
SELECT best, COUNT(*) AS pupils FROM (SELECT pupil_id, MIN(mark) AS best FROM marks GROUP BY pupil_id) AS t GROUP BY best;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / improved / plain: Whose last mark is better than the first?
SELECT COUNT(*) FROM (SELECT pupil_id, ARG_MIN(mark, day) AS first, ARG_MAX(mark, day) AS last FROM marks GROUP BY pupil_id) AS t
WHERE last < first;
--> COUNT(*): 1 1 1 | 1 1 1

-- count / all excused / group boolean: Were all of a pupil's absences excused?
SELECT excused, COUNT(*) FROM (SELECT pupil_id, BOOL_AND(excused) AS excused FROM absences GROUP BY pupil_id) AS t
GROUP BY excused;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / marks and absences / where: Marks given on a day of absence
SELECT COUNT(*) FROM marks m JOIN absences a ON m.pupil_id = a.pupil_id AND m.day = a.day;
--> COUNT(*): 6 6 6 | 6 6 6

-- count / marks union absences / group category: Entries in the class book
SELECT what, COUNT(*) FROM (SELECT 'mark' AS what, day FROM marks UNION ALL SELECT 'absence', day FROM absences) AS book
WHERE day < '2025-01-01' GROUP BY what;
--> COUNT(*): 5 5 5 | 10 √50 5

-- persons / marks / group category: Pupils with marks in each subject
SELECT subject, COUNT(DISTINCT pupil_id) AS pupils FROM marks GROUP BY subject;
--> COUNT(DISTINCT pupil_id): 3 √3 1 | 3 √3 1

-- persons / marks / group number: Pupils who got each mark at least once
SELECT mark, COUNT(DISTINCT pupil_id) AS pupils FROM marks GROUP BY mark;
--> COUNT(DISTINCT pupil_id): 3 √3 1 | 6 √6 1

-- persons / absences / filter: Excused and not excused
SELECT COUNT(DISTINCT pupil_id) FILTER (WHERE excused) AS excused,
       COUNT(DISTINCT pupil_id) FILTER (WHERE NOT excused) AS unexcused FROM absences;
--> COUNT(DISTINCT pupil_id) FILTER(WHERE excused): 1 1 1 | 1 1 1
--> COUNT(DISTINCT pupil_id) FILTER(WHERE NOT excused): 1 1 1 | 1 1 1

-- sum / absences / plain: Lessons missed
SELECT SUM(lessons) FROM absences;
--> SUM(lessons): 16 16 16 | 16 16 16

-- sum / absences / group month: Lessons missed by month
SELECT month(day) AS month, SUM(lessons) AS lessons FROM absences GROUP BY month;
--> SUM(lessons): 16 16 16 | 32 √512 16

-- sum / absences join pupils / group integer category: Lessons missed in each grade
SELECT p.grade, SUM(a.lessons) AS lessons FROM pupils p JOIN absences a ON p.pupil_id = a.pupil_id GROUP BY p.grade;
--> SUM(a.lessons): 16 16 16 | 32 √512 16

-- sum, both signs / marks / group category: Points in each subject
SELECT subject, SUM(points) AS points FROM marks GROUP BY subject;
--> SUM(points): 60 60 60 | 120 √7200 75

-- sum, both signs / marks / filter: Points in two subjects
SELECT SUM(points) FILTER (WHERE subject = 'art') AS art, SUM(points) FILTER (WHERE subject <> 'art') AS other FROM marks;
--> SUM(points) FILTER(WHERE subject = 'art'): 60 60 60 | 75 75 75
--> SUM(points) FILTER(WHERE subject <> 'art'): 60 60 60 | 75 75 75

-- sum, both signs / marks join public / product: Points weighted by hours
SELECT SUM(m.points * s.hours) AS points FROM marks m JOIN subjects s ON m.subject = s.subject;
--> SUM(m.points * s.hours): 240 240 240 | 300 300 300

-- mean / pupils / plain: The mean height, in inches from 48 to 96
SELECT AVG(height) FROM pupils;
--> AVG(height): 48 48 48 | 96 √4608 48

-- mean / marks / group category: The mean mark in each subject
SELECT subject, AVG(mark) AS mean FROM marks GROUP BY subject;
--> AVG(mark): 15 15 15 | 30 √450 15

-- mean / marks / having: Subjects that are too hard
SELECT subject, AVG(mark) AS mean FROM marks GROUP BY subject HAVING AVG(mark) > 3;
--> AVG(mark): 15 15 15 | 30 √450 15

-- mean / marks / boolean: The share of good marks
SELECT subject, AVG(CASE WHEN mark <= 2 THEN 1 ELSE 0 END) AS good FROM marks GROUP BY subject;
--> AVG(CASE WHEN mark <= 2 THEN 1 ELSE 0 END): 3 3 3 | 6 √18 3

-- mean / pupils' own means / group integer category: The mean of pupils' means, by grade
SELECT p.grade, AVG(m.mean) AS mean FROM pupils p
JOIN (SELECT pupil_id, AVG(mark) AS mean FROM marks GROUP BY pupil_id) AS m ON p.pupil_id = m.pupil_id GROUP BY p.grade;
--> AVG(m.mean): 5000 5000 5000 | 10000 √50000000 5000

-- deviation / marks / group category: How far apart are marks?
SELECT subject, STDDEV(mark) AS deviation FROM marks GROUP BY subject;
--> STDDEV(mark): 75 75 75 | 150 √11250 75

-- variance / pupils / plain: Variance of height
SELECT VARIANCE(height) FROM pupils;
--> VARIANCE(height): 2304 2304 2304 | 4608 √10616832 2304

-- correlation / marks and absences / plain: Do absences go with bad marks?
SELECT CORR(m.mark, a.lessons) FROM marks m JOIN absences a ON m.pupil_id = a.pupil_id;
--> CORR(m.mark, a.lessons): 7350 7350 7350 | 14700 √108045000 7350

-- median / marks / group category: The median mark
SELECT subject, MEDIAN(mark) AS mark FROM marks GROUP BY subject;
--> MEDIAN(mark): rank 3/2 | rank 3

-- quantiles / pupils / group integer category: Thirds of the height in each grade
SELECT grade, QUANTILE_DISC(height, [0.25, 0.75]) AS height FROM pupils GROUP BY grade;
--> QUANTILE_DISC(height, [0.25, 0.75]): rank 3/4 | rank 3/2

-- mode / marks / group category: The usual mark
SELECT subject, MODE(mark) AS mark FROM marks GROUP BY subject;
--> MODE(mark): rank 3 | rank 3

-- minimum / absences / plain: About the shortest absence
SELECT MIN(lessons) FROM absences;
--> MIN(lessons): rank 2 | rank 2

-- several / marks / report: A report on each subject
SELECT m.subject, s.hours, m.marks, m.pupils, m.mean FROM subjects s JOIN (SELECT subject, COUNT(*) AS marks,
COUNT(DISTINCT pupil_id) AS pupils, AVG(mark) AS mean FROM marks GROUP BY subject) AS m ON s.subject = m.subject;
--> COUNT(DISTINCT pupil_id): 3 √3 1 | 3 √3 1
--> AVG(mark), COUNT(*): 15 15 15 | 30 √450 15

-- policy: land

-- ===== places that lie in others =====

-- count / voters / group hierarchy: Voters by state and county: a county lies in one state
SELECT state, county, COUNT(*) AS voters FROM voters GROUP BY state, county;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / voters / group three levels: Voters by state, county and ward
SELECT state, county, ward, COUNT(*) AS voters FROM voters WHERE county IS NOT NULL GROUP BY state, county, ward;
--> COUNT(*): 1 1 1 | 2 √2 1

-- count / ballots / group hierarchy and day: Ballots by state, county and day
SELECT state, county, day, COUNT(*) AS ballots FROM ballots WHERE state IN ('s0', 's9') GROUP BY state, county, day;
--> COUNT(*): 2 2 2 | 4 √8 2

-- several / ballots / rollup hierarchy: Ballots and how long they took, by county, by state and in all
SELECT state, county, COUNT(*) AS ballots, AVG(minutes) AS took FROM ballots GROUP BY ROLLUP (state, county);
--> AVG(minutes), COUNT(*): 240 240 240 | 480 √115200 240
--> AVG(minutes), COUNT(*): 240 240 240 | 480 √115200 240
--> AVG(minutes), COUNT(*): 240 240 240 | 480 √115200 240

-- persons / ballots / group hierarchy: People who voted, by state and county
SELECT state, county, COUNT(DISTINCT voter_id) AS voters FROM ballots GROUP BY state, county;
--> COUNT(DISTINCT voter_id): 2 √2 1 | 4 2 1

-- count / voters and ballots / group hierarchy of two tables: Where people live, and where they vote
SELECT v.state, b.county, COUNT(*) AS n FROM voters v JOIN ballots b ON v.voter_id = b.voter_id
WHERE v.state IN ('s0', 's1') GROUP BY v.state, b.county;
--> COUNT(*): 2 2 2 | 4 √8 2

-- median / ballots / group hierarchy: How long it took, by county
SELECT state, county, MEDIAN(minutes) AS took FROM ballots GROUP BY state, county;
--> MEDIAN(minutes): rank 1 | rank 2
