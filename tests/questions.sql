-- Questions that a data officer would ask, as analysts and tools write them. `questions.py` has the policies.

-- policy: hospital

-- patients by sex, %
SELECT CASE WHEN male THEN 'male' ELSE 'female' END AS sex, COUNT(*) AS n, ROUND(100.0 * COUNT(*) /
SUM(COUNT(*)) OVER (), 1) AS pct FROM patients GROUP BY 1;

-- % dead by age decade
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n, AVG(status::int) * 100 AS pct_dead FROM patients GROUP
BY 1 ORDER BY 1;

-- median bmi by sex
SELECT male, MEDIAN(bmi) AS median_bmi, COUNT(*) AS n FROM patients GROUP BY male;

-- quartiles of age
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY
age) AS q2, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM patients;

-- histogram, obese classes
SELECT CASE WHEN bmi < 18.5 THEN 'under' WHEN bmi < 25 THEN 'normal' WHEN bmi < 30 THEN 'over' ELSE 'obese'
END AS class, COUNT(*) AS n FROM patients WHERE bmi IS NOT NULL GROUP BY class ORDER BY n DESC;

-- corr age/bmi
SELECT CORR(age, bmi) FROM patients;

-- top diagnoses
SELECT event, COUNT(DISTINCT id) AS patients FROM events GROUP BY event ORDER BY patients DESC LIMIT 10;

-- diabetics with stroke (joined)
SELECT COUNT(DISTINCT d.id) FROM events d JOIN events s ON d.id = s.id WHERE d.event = 'diabetes' AND s.event
= 'stroke';

-- comorbidity count distribution
SELECT n_events, COUNT(*) AS patients FROM (SELECT id, COUNT(DISTINCT event) AS n_events FROM events GROUP BY
id) t GROUP BY n_events ORDER BY n_events;

-- patients w/o any lab
SELECT COUNT(*) FROM patients p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL;

-- last lab per patient
SELECT AVG(value) FROM (SELECT id, value, ROW_NUMBER() OVER (PARTITION BY id ORDER BY days DESC) AS rn FROM
labs WHERE test = 'hdl') t WHERE rn = 1;

-- above own average (subquery)
SELECT COUNT(*) FROM patients WHERE bmi > (SELECT AVG(bmi) FROM patients);

-- std & mean of bmi
SELECT COUNT(bmi), AVG(bmi), STDDEV(bmi), MIN(bmi), MAX(bmi) FROM patients;

-- five-year survival
SELECT male, 1 - AVG(CASE WHEN status AND futime < 5*365 THEN 1 ELSE 0 END) AS surv5 FROM patients GROUP BY
male;

-- risk of death of the obese against others
WITH g AS (SELECT CASE WHEN bmi >= 30 THEN 'obese' ELSE 'other' END AS grp, COUNT(*) AS n, SUM(status::int) AS
dead FROM patients WHERE bmi IS NOT NULL GROUP BY 1) SELECT (SELECT dead * 1.0 / n FROM g WHERE grp = 'obese')
/ (SELECT dead * 1.0 / n FROM g WHERE grp = 'other') AS relative_risk;

-- odds ratio of diabetes and death, with an interval
WITH t AS (SELECT COUNT(*) FILTER (WHERE d AND status) AS a, COUNT(*) FILTER (WHERE d AND NOT status) AS b,
COUNT(*) FILTER (WHERE NOT d AND status) AS c, COUNT(*) FILTER (WHERE NOT d AND NOT status) AS e FROM (SELECT
p.status, EXISTS (SELECT 1 FROM events x WHERE x.id = p.id AND x.event = 'diabetes') AS d FROM patients p) s)
SELECT a, b, c, e, (a * e) * 1.0 / (b * c) AS oratio, EXP(LN((a * e) * 1.0 / (b * c)) - 1.96 * SQRT(1.0/a +
1.0/b + 1.0/c + 1.0/e)) AS lo, EXP(LN((a * e) * 1.0 / (b * c)) + 1.96 * SQRT(1.0/a + 1.0/b + 1.0/c + 1.0/e))
AS hi FROM t;

-- deaths per 1,000 person years by age
SELECT CASE WHEN age < 40 THEN '<40' WHEN age < 60 THEN '40-59' WHEN age < 75 THEN '60-74' ELSE '75+' END AS
band, SUM(status::int) AS deaths, SUM(futime) / 365.25 AS py, 1000 * SUM(status::int) / (SUM(futime) / 365.25)
AS rate FROM patients GROUP BY 1 ORDER BY 1;

-- change from the first to the last lab value
WITH x AS (SELECT id, value, ROW_NUMBER() OVER (PARTITION BY id ORDER BY days) AS a, ROW_NUMBER() OVER
(PARTITION BY id ORDER BY days DESC) AS z FROM labs WHERE test = 'hdl') SELECT AVG(l.value - f.value) AS
change, COUNT(*) AS n FROM x f JOIN x l ON f.id = l.id WHERE f.a = 1 AND l.z = 1;

-- days between labs in a row
SELECT AVG(gap) AS mean_gap, MEDIAN(gap) AS median_gap, COUNT(gap) AS n FROM (SELECT days - LAG(days) OVER
(PARTITION BY id ORDER BY days) AS gap FROM labs WHERE test = 'sbp') t;

-- one diagnosis before another
SELECT COUNT(DISTINCT h.id) AS patients FROM events h JOIN events n ON h.id = n.id AND n.event = 'nafld' AND
h.event = 'htn' AND h.days < n.days;

-- funnel of diagnoses
WITH first AS (SELECT id, MIN(CASE WHEN event = 'nafld' THEN days END) AS nafld, MIN(CASE WHEN event =
'diabetes' THEN days END) AS dm, MIN(CASE WHEN event IN ('MI', 'ang/isc', 'heart failure', 'cardiac arrest')
THEN days END) AS cvd FROM events GROUP BY id) SELECT COUNT(*) AS any_event, COUNT(nafld) AS nafld, COUNT(*)
FILTER (WHERE nafld IS NOT NULL AND dm > nafld) AS then_dm, COUNT(*) FILTER (WHERE nafld IS NOT NULL AND dm >
nafld AND cvd > dm) AS then_cvd FROM first;

-- high at the last measurement
SELECT p.male, AVG(CASE WHEN l.value >= 140 THEN 1.0 ELSE 0 END) AS share_high FROM patients p JOIN (SELECT
id, ARG_MAX(value, days) AS value FROM labs WHERE test = 'sbp' GROUP BY id) l ON l.id = p.id GROUP BY p.male;

-- difference of risks by four subqueries
SELECT (SELECT COUNT(*) FROM patients WHERE status AND male) * 1.0 / (SELECT COUNT(*) FROM patients WHERE
male) - (SELECT COUNT(*) FROM patients WHERE status AND NOT male) * 1.0 / (SELECT COUNT(*) FROM patients WHERE
NOT male) AS risk_difference;

-- events of a patient: mean, deviation, median, most
SELECT AVG(n) AS mean_n, STDDEV(n) AS sd, MEDIAN(n) AS med, MAX(n) AS mx FROM (SELECT id, COUNT(*) AS n FROM
events GROUP BY id) t;

-- quartiles of rows by NTILE
SELECT q, AVG(age), COUNT(*) FROM (SELECT age, NTILE(4) OVER (ORDER BY bmi) AS q FROM patients) t GROUP BY q;

-- death rates standardized by age
WITH r AS (SELECT male, FLOOR(age/20)*20 AS band, AVG(status::int) AS rate, COUNT(*) AS n FROM patients GROUP
BY 1, 2), w AS (SELECT band, SUM(n) AS w FROM r GROUP BY band) SELECT r.male, SUM(r.rate * w.w) / SUM(w.w) AS
std_rate FROM r JOIN w ON r.band = w.band GROUP BY r.male;

-- policy: covid

-- positivity rate by week, moving average
SELECT wk, positive, tests, 1.0*positive/tests AS rate, AVG(1.0*positive/tests) OVER (ORDER BY wk ROWS BETWEEN
2 PRECEDING AND CURRENT ROW) AS ma3 FROM (SELECT pan_day // 7 AS wk, COUNT(*) FILTER (WHERE result='positive')
AS positive, COUNT(*) AS tests FROM covid_testing GROUP BY wk) ORDER BY wk;

-- top 10 clinics
SELECT clinic_name, COUNT(*) AS n FROM covid_testing GROUP BY clinic_name ORDER BY n DESC LIMIT 10;

-- pivot result x gender
SELECT gender, SUM(CASE WHEN result='positive' THEN 1 ELSE 0 END) AS pos, SUM(CASE WHEN result='negative' THEN
1 ELSE 0 END) AS neg, SUM(CASE WHEN result='invalid' THEN 1 ELSE 0 END) AS inv FROM covid_testing GROUP BY
gender;

-- share of total by payor
SELECT payor_group, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM covid_testing) AS pct FROM covid_testing GROUP BY
payor_group ORDER BY pct DESC;

-- repeat testers
SELECT tests, COUNT(*) AS people FROM (SELECT subject_id, COUNT(*) AS tests FROM covid_testing GROUP BY
subject_id HAVING COUNT(*) > 1) x GROUP BY tests ORDER BY tests;

-- retention cohort
WITH first AS (SELECT subject_id, MIN(pan_day // 14) AS cohort FROM covid_testing GROUP BY subject_id) SELECT
f.cohort, t.pan_day // 14 - f.cohort AS fortnights_later, COUNT(DISTINCT t.subject_id) AS n FROM covid_testing
t JOIN first f ON f.subject_id = t.subject_id GROUP BY 1, 2 ORDER BY 1, 2;

-- running total of positives
SELECT pan_day, SUM(COUNT(*)) OVER (ORDER BY pan_day) AS cum FROM covid_testing WHERE result = 'positive'
GROUP BY pan_day ORDER BY pan_day;

-- positivity over three weeks
SELECT wk, 100.0 * SUM(pos) OVER w / SUM(n) OVER w AS rate3 FROM (SELECT pan_day // 7 AS wk, SUM(CASE WHEN
result = 'positive' THEN 1 ELSE 0 END) AS pos, COUNT(*) AS n FROM covid_testing GROUP BY 1) t WINDOW w AS
(ORDER BY wk ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) ORDER BY wk;

-- from negative to positive
SELECT COUNT(*) AS converters FROM (SELECT subject_id FROM covid_testing GROUP BY subject_id HAVING COUNT(*)
FILTER (WHERE result = 'negative') > 0 AND COUNT(*) FILTER (WHERE result = 'positive') > 0) t;

-- days from the first to the second test
SELECT AVG(gap) AS mean_gap, MEDIAN(gap) AS med, COUNT(*) AS n FROM (SELECT subject_id, pan_day - LAG(pan_day)
OVER (PARTITION BY subject_id ORDER BY pan_day) AS gap, ROW_NUMBER() OVER (PARTITION BY subject_id ORDER BY
pan_day) AS rn FROM covid_testing) t WHERE rn = 2;

-- share of a cohort that is tested again
WITH f AS (SELECT subject_id, MIN(pan_day) // 28 AS cohort FROM covid_testing GROUP BY 1), a AS (SELECT
f.cohort, t.pan_day // 28 - f.cohort AS later, COUNT(DISTINCT t.subject_id) AS n FROM covid_testing t JOIN f
ON t.subject_id = f.subject_id GROUP BY 1, 2) SELECT cohort, later, n, 100.0 * n / FIRST_VALUE(n) OVER
(PARTITION BY cohort ORDER BY later) AS retained FROM a ORDER BY 1, 2;

-- each week against the largest
WITH w AS (SELECT pan_day // 7 AS wk, COUNT(*) AS n FROM covid_testing GROUP BY 1) SELECT wk, n, n * 100.0 /
MAX(n) OVER () AS pct_of_peak, n - FIRST_VALUE(n) OVER (ORDER BY wk) AS since_first FROM w;

-- mean and deviation of weekly rates
WITH w AS (SELECT pan_day // 7 AS wk, COUNT(*) FILTER (WHERE result='positive') * 1.0 / COUNT(*) AS rate FROM
covid_testing WHERE pan_day < 98 GROUP BY 1) SELECT AVG(rate) AS mean_rate, STDDEV(rate) AS sd, MIN(rate) AS
lo, MAX(rate) AS hi FROM w;

-- latest result of a person (QUALIFY)
SELECT result, COUNT(*) AS people FROM (SELECT subject_id, result FROM covid_testing QUALIFY ROW_NUMBER() OVER
(PARTITION BY subject_id ORDER BY pan_day DESC) = 1) t GROUP BY result;

-- policy: nyc

-- mean delay by carrier name (public join)
SELECT a.name, AVG(f.dep_delay) AS mean_delay, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier =
a.carrier GROUP BY a.name ORDER BY mean_delay DESC;

-- month over month
SELECT DATE_TRUNC('month', time_hour) AS m, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY
DATE_TRUNC('month', time_hour)) AS diff FROM flights GROUP BY 1 ORDER BY 1;

-- % cancelled
SELECT carrier, 100.0 * SUM(CASE WHEN dep_time IS NULL THEN 1 ELSE 0 END) / COUNT(*) AS pct_cancelled FROM
flights GROUP BY carrier ORDER BY pct_cancelled DESC;

-- age of plane vs delay
SELECT (2013 - p.year) // 5 * 5 AS plane_age, AVG(f.arr_delay) AS delay FROM flights f JOIN planes p ON
f.tailnum = p.tailnum GROUP BY plane_age ORDER BY plane_age;

-- planes per manufacturer
SELECT manufacturer, COUNT(*) FROM planes GROUP BY manufacturer HAVING COUNT(*) > 10 ORDER BY 2 DESC;

-- Superset style
SELECT carrier AS carrier, AVG(dep_delay) AS "AVG(dep_delay)" FROM (SELECT * FROM flights) AS virtual_table
WHERE time_hour >= TO_TIMESTAMP('2013-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND time_hour <
TO_TIMESTAMP('2013-09-01', 'YYYY-MM-DD') GROUP BY carrier ORDER BY "AVG(dep_delay)" DESC LIMIT 1000;

-- Tableau style
SELECT "flights"."carrier" AS "carrier", SUM(1) AS "sum:Number of Records:ok", AVG(CAST("flights"."dep_delay"
AS DOUBLE PRECISION)) AS "avg:dep_delay:ok" FROM "public"."flights" "flights" GROUP BY 1;

-- pivot
PIVOT flights ON origin USING COUNT(*) GROUP BY month;

-- SELECT *
SELECT * FROM flights LIMIT 5;

-- weekday share
SELECT dayname(time_hour) AS wd, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY wd;

-- on-time rate
SELECT origin, COUNT(*) FILTER (WHERE arr_delay <= 15) * 100.0 / COUNT(arr_delay) AS on_time_pct FROM flights
GROUP BY origin;

-- top carrier per origin
SELECT * FROM (SELECT origin, carrier, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY COUNT(*)
DESC) AS rk FROM flights GROUP BY origin, carrier) t WHERE rk <= 3;

-- STRING_AGG
SELECT STRING_AGG(DISTINCT carrier, ',') FROM flights;

-- show tables
SHOW TABLES;

-- information_schema
SELECT table_name, column_name FROM information_schema.columns;

-- on-time rate and its change
SELECT month, rate, rate - LAG(rate) OVER (ORDER BY month) AS change FROM (SELECT month, AVG(CASE WHEN
arr_delay <= 0 THEN 1.0 ELSE 0.0 END) AS rate FROM flights WHERE arr_delay IS NOT NULL GROUP BY month) t ORDER
BY month;

-- three largest destinations of each origin
SELECT origin, dest, n FROM (SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY 1, 2) t QUALIFY RANK()
OVER (PARTITION BY origin ORDER BY n DESC) <= 3 ORDER BY 1, 3 DESC;

-- planes by their number of flights
SELECT FLOOR(n / 50) * 50 AS flights, COUNT(*) AS planes FROM (SELECT tailnum, COUNT(*) AS n FROM flights
GROUP BY tailnum) t GROUP BY 1 ORDER BY 1;

-- planes of several carriers
SELECT COUNT(*) FROM (SELECT tailnum FROM flights GROUP BY tailnum HAVING COUNT(DISTINCT carrier) > 1) t;

-- planes of summer that winter does not see
SELECT COUNT(DISTINCT tailnum) FROM flights s WHERE month IN (6, 7, 8) AND NOT EXISTS (SELECT 1 FROM flights w
WHERE w.tailnum = s.tailnum AND w.month IN (12, 1, 2));

-- active planes and who comes back
WITH m AS (SELECT DISTINCT tailnum, month FROM flights) SELECT a.month, COUNT(*) AS active, COUNT(b.tailnum)
AS back, 100.0 * COUNT(b.tailnum) / COUNT(*) AS retention FROM m a LEFT JOIN m b ON b.tailnum = a.tailnum AND
b.month = a.month + 1 GROUP BY a.month ORDER BY 1;

-- standard error of a mean
SELECT origin, AVG(dep_delay) AS m, AVG(dep_delay) - 1.96 * STDDEV(dep_delay) / SQRT(COUNT(dep_delay)) AS lo,
AVG(dep_delay) + 1.96 * STDDEV(dep_delay) / SQRT(COUNT(dep_delay)) AS hi FROM flights GROUP BY origin;

-- policy: trial

-- deaths by treatment
SELECT rx, COUNT(*) AS patients, SUM(status) AS deaths, ROUND(100.0 * SUM(status) / COUNT(*), 1) AS pct
FROM trial WHERE etype = 2 GROUP BY rx ORDER BY rx;

-- median follow-up of the living
SELECT rx, MEDIAN(time) AS days, COUNT(*) AS n FROM trial WHERE etype = 2 AND status = 0 GROUP BY rx;

-- five-year survival with an interval
WITH s AS (SELECT rx, COUNT(*) AS n, AVG(CASE WHEN status = 1 AND time <= 1825 THEN 0.0 ELSE 1.0 END) AS surv
FROM trial WHERE etype = 2 GROUP BY rx)
SELECT rx, surv, surv - 1.96 * SQRT(surv * (1 - surv) / n) AS low, surv + 1.96 * SQRT(surv * (1 - surv) / n) AS high
FROM s;

-- dead within a year of a recurrence
SELECT COUNT(DISTINCT r.id) AS patients FROM trial r JOIN trial d ON r.id = d.id
WHERE r.etype = 1 AND r.status = 1 AND d.etype = 2 AND d.status = 1 AND d.time - r.time <= 365;

-- positive nodes by treatment
SELECT CASE WHEN nodes = 0 THEN '0' WHEN nodes <= 4 THEN '1-4' ELSE '5+' END AS positive, rx, COUNT(*) AS n
FROM trial WHERE etype = 1 AND nodes IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2;

-- complications together
SELECT obstruct, perfor, adhere, COUNT(*) AS n FROM trial WHERE etype = 1 GROUP BY CUBE (obstruct, perfor, adhere);

-- life table by half-years
SELECT time // 182 AS half_year, COUNT(*) FILTER (WHERE status = 1) AS deaths,
COUNT(*) FILTER (WHERE status = 0) AS censored, SUM(COUNT(*)) OVER (ORDER BY time // 182 DESC) AS at_risk
FROM trial WHERE etype = 2 GROUP BY 1 ORDER BY 1;

-- deaths per 1,000 patient years
SELECT sex, 365250.0 * SUM(status) / SUM(time) AS per_1000 FROM trial WHERE etype = 2 GROUP BY sex;

-- the oldest patients
SELECT id, age, rx FROM trial ORDER BY age DESC LIMIT 10;

-- policy: stops

-- stops by race, share
SELECT race, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM stops GROUP BY race ORDER BY n DESC;

-- search rate by race, larger groups
SELECT race, AVG(CASE WHEN personSearch = 'YES' THEN 1.0 ELSE 0.0 END) AS search_rate, COUNT(*) AS n FROM stops
GROUP BY race HAVING COUNT(*) > 500 ORDER BY search_rate DESC;

-- weekdays and hours
SELECT EXTRACT(ISODOW FROM date) AS weekday, EXTRACT(HOUR FROM date) AS hour, COUNT(*) AS n FROM stops
GROUP BY 1, 2 ORDER BY 1, 2;

-- weeks of one precinct, four together
SELECT DATE_TRUNC('week', date) AS wk, COUNT(*) AS n,
AVG(COUNT(*)) OVER (ORDER BY DATE_TRUNC('week', date) ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS ma4
FROM stops WHERE policePrecinct = 4 GROUP BY 1 ORDER BY 1;

-- neighborhoods with most stops
SELECT neighborhood, COUNT(*) AS n FROM stops GROUP BY neighborhood ORDER BY n DESC LIMIT 10;

-- race as expected and as found
SELECT preRace, race, COUNT(*) AS n FROM stops WHERE preRace <> 'Unknown' AND race <> 'Unknown' GROUP BY 1, 2;

-- change from June to July
WITH m AS (SELECT policePrecinct AS precinct, COUNT(*) FILTER (WHERE MONTH(date) = 6) AS june,
COUNT(*) FILTER (WHERE MONTH(date) = 7) AS july FROM stops GROUP BY 1)
SELECT precinct, june, july, 100.0 * (july - june) / NULLIF(june, 0) AS change FROM m ORDER BY precinct;

-- how many times as often searched
SELECT (SELECT AVG(CASE WHEN vehicleSearch = 'YES' THEN 1.0 ELSE 0.0 END) FROM stops WHERE race = 'Black')
/ (SELECT AVG(CASE WHEN vehicleSearch = 'YES' THEN 1.0 ELSE 0.0 END) FROM stops WHERE race = 'White') AS ratio;

-- a day and its precincts
SELECT DATE_TRUNC('hour', date) AS hour, policePrecinct, COUNT(*) AS n FROM stops
WHERE date >= '2017-07-04' AND date < '2017-07-05' GROUP BY 1, 2 ORDER BY 1, 2;

-- days with more than 200 stops
SELECT COUNT(*) AS days FROM (SELECT CAST(date AS DATE) AS d, COUNT(*) AS n FROM stops GROUP BY 1) AS t WHERE n > 200;

-- where the last stops were
SELECT DISTINCT neighborhood FROM stops WHERE date >= '2017-12-31';

-- policy: survey

-- visits by insurance
SELECT private, freepoor, freerepat, AVG(visits) AS mean_visits, COUNT(*) AS n FROM survey
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- how many visits
SELECT visits, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / (SELECT COUNT(*) FROM survey), 2) AS pct FROM survey
GROUP BY visits ORDER BY visits;

-- quartiles of income by gender
SELECT gender, QUANTILE_CONT(income, [0.25, 0.5, 0.75]) AS quartiles, COUNT(*) AS n FROM survey GROUP BY gender;

-- what goes with visits
SELECT CORR(income, visits) AS income, CORR(age, visits) AS age, REGR_SLOPE(visits, illness) AS each_illness FROM survey;

-- odds of a visit with a chronic condition
SELECT COUNT(*) FILTER (WHERE lchronic = 'yes' AND visits > 0) * COUNT(*) FILTER (WHERE lchronic = 'no' AND visits = 0)
/ NULLIF(COUNT(*) FILTER (WHERE lchronic = 'yes' AND visits = 0)
* COUNT(*) FILTER (WHERE lchronic = 'no' AND visits > 0), 0)
AS odds_ratio FROM survey;

-- who goes more often than the mean
SELECT COUNT(*) FROM survey WHERE visits > (SELECT AVG(visits) FROM survey);
