-- Functions of Postgres, and what they are made of, for the catalog's own database.
-- Objects that clients refer to by name (regclass, regtype, ...) are numbers; d_NAME_text and d_NAME turn one into the other.
-- Relations of pg_catalog have numbers below 13,000, those of information_schema below 16,384, and the policy's the rest.
-- Names of tables end in __, so that no argument is taken for a column of theirs.
CREATE MACRO d_quote_ident(x) AS
  CASE WHEN regexp_full_match(x, '[a-z_][a-z0-9_$]*') AND NOT EXISTS (SELECT 1 FROM main.keywords k__ WHERE
  k__.word = x AND k__.catcode <> 'U') THEN x ELSE '"' || replace(x, '"', '""') || '"' END;
CREATE MACRO d_bare(x) AS
  replace(CASE WHEN contains(x, '.') THEN split_part(x, '.', -1) ELSE x END, '"', '');
CREATE MACRO d_format_type(o, m) AS
  (SELECT f__.said || CASE WHEN coalesce(m, -1) < 0 OR f__.typname NOT IN ('varchar', 'bpchar') THEN '' ELSE '('
  || (m - 4) || ')' END FROM main.written_types f__ WHERE f__.oid = o);
CREATE MACRO d_obj_description(o) AS
  (SELECT e__.description FROM main.pg_description e__ WHERE e__.objoid = o AND e__.objsubid = 0);
CREATE MACRO d_index_part(o, n) AS
  (SELECT k__.said FROM main.texts_of_keys k__ WHERE k__.oid = o AND k__.place = n);
CREATE MACRO d_regtype_text(o) AS
  CASE WHEN o = 0 THEN '-' ELSE coalesce(d_format_type(o, NULL), CAST(o AS VARCHAR)) END;
CREATE MACRO d_regtype(x) AS
  (SELECT min(f__.oid) FROM main.written_types f__ WHERE f__.said = lower(replace(x, 'pg_catalog.', '')) OR
  f__.typname = lower(replace(x, 'pg_catalog.', '')) OR f__.also = lower(replace(x, 'pg_catalog.', '')));
CREATE MACRO d_regclass_text(o) AS
  CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT CASE WHEN r__.relnamespace = 13207 THEN 'information_schema.'
  ELSE '' END || d_quote_ident(r__.relname) FROM main.pg_class r__ WHERE r__.oid = o), CAST(o AS VARCHAR)) END;
CREATE MACRO d_regclass(x) AS
  coalesce(TRY_CAST(x AS BIGINT), (SELECT min(r__.oid) FROM main.pg_class r__ JOIN main.pg_namespace s__ ON
  s__.oid = r__.relnamespace WHERE (r__.relname = d_bare(x) OR r__.relname = lower(d_bare(x))) AND CASE WHEN
  contains(x, '.') THEN lower(split_part(replace(x, '"', ''), '.', 1)) = s__.nspname ELSE s__.nspname IN
  ('pg_catalog', 'public') END));
CREATE MACRO d_regproc_text(o) AS
  CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT p__.proname FROM main.pg_proc p__ WHERE p__.oid = o), CAST(o AS
  VARCHAR)) END;
CREATE MACRO d_regproc(x) AS
  (SELECT min(p__.oid) FROM main.pg_proc p__ WHERE p__.proname = lower(d_bare(split_part(x, '(', 1))));
CREATE MACRO d_regnamespace_text(o) AS
  coalesce((SELECT d_quote_ident(s__.nspname) FROM main.pg_namespace s__ WHERE s__.oid = o), CAST(o AS VARCHAR));
CREATE MACRO d_regnamespace(x) AS
  (SELECT s__.oid FROM main.pg_namespace s__ WHERE s__.nspname = replace(x, '"', ''));
CREATE MACRO d_regrole_text(o) AS
  CASE o WHEN 10 THEN 'curator' ELSE CAST(o AS VARCHAR) END;
CREATE MACRO d_regrole(x) AS
  CASE x WHEN 'curator' THEN 10 ELSE 16385 END;
CREATE MACRO d_quote_literal(x) AS
  '''' || replace(CAST(x AS VARCHAR), '''', '''''') || '''';
CREATE MACRO d_col_description(o, n) AS
  (SELECT e__.description FROM main.pg_description e__ WHERE e__.objoid = o AND e__.objsubid = n);
CREATE MACRO d_told_of(o, c) AS
  CASE WHEN c = 'pg_class' THEN d_obj_description(o) END;
CREATE MACRO d_constraint(o) AS
  (SELECT k__.said FROM main.texts_of_keys k__ WHERE k__.oid = o AND k__.place = 0);
CREATE MACRO d_short_index(o, n) AS
  replace(d_index_part(o, n), ' ON public.', ' ON ');
CREATE MACRO d_visible(o) AS
  o < 13000 OR o >= 16384;
CREATE MACRO d_may(p) AS
  lower(p) IN ('select', 'usage', 'connect', 'select with grant option', 'member', 'execute');
CREATE MACRO d_array_lower(a, d) AS
  CASE WHEN len(a) > 0 AND d = 1 THEN 1 END;
CREATE MACRO d_array_upper(a, d) AS
  CASE WHEN len(a) > 0 AND d = 1 THEN len(a)::INTEGER END;
CREATE MACRO d_array_cat(a, b) AS
  list_concat(a, b);
CREATE MACRO d_array_to_string(a, s) AS
  array_to_string(list_filter(a, lambda x: x IS NOT NULL), s);
CREATE MACRO d_substring_like(x, p) AS
  CASE WHEN regexp_matches(x, p) THEN regexp_extract(x, p, 1) END;
CREATE MACRO d_size_pretty(n) AS
  CASE WHEN n < 10240 THEN n || ' bytes' WHEN n < 10485760 THEN round(n / 1024)::BIGINT || ' kB' ELSE round(n /
  1048576)::BIGINT || ' MB' END;
CREATE MACRO d_encoding(n) AS
  CASE n WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' WHEN 8 THEN 'LATIN1' ELSE '' END;
CREATE MACRO d_encoding_number(x) AS
  CASE WHEN upper(replace(x, '-', '')) = 'UTF8' THEN 6 ELSE -1 END;
CREATE MACRO d_expand(a) AS
  unnest(list_transform(range(1, len(a) + 1), lambda i: {'x': a[i], 'n': i}));
CREATE MACRO d_aclexplode(a) AS
  unnest(CAST([] AS STRUCT(grantor BIGINT, grantee BIGINT, privilege_type VARCHAR, is_grantable BOOLEAN)[]));
CREATE MACRO d_subscripts(a) AS
  unnest(range(1, len(a) + 1));
CREATE MACRO d_subscripts_from_0(a) AS
  unnest(range(0, len(a)));
CREATE MACRO d_series(a, b) AS
  unnest(generate_series(a, b));
CREATE MACRO d_position(a, b) AS
  strpos(b, a);
CREATE MACRO d_parts(x) AS
  list_transform(string_split(x, '.'), lambda p: replace(p, '"', ''));
CREATE MACRO d_types_text(a) AS
  coalesce(array_to_string(list_transform(a, lambda o: CAST(o AS VARCHAR)), ', '), '');
CREATE MACRO d_short(x) AS
  list_transform([x], lambda v: CASE WHEN strlen(v) > 65536 THEN error('a text is too long') ELSE v END)[1];
CREATE MACRO d_joined(x) AS
  list_transform([x], lambda v: CASE WHEN strlen(v) > 8192 THEN error('a text is too long') ELSE v END)[1];
CREATE MACRO d_few(x) AS
  list_transform([x], lambda v: CASE WHEN len(v) > 10000 THEN error('an array is too long') ELSE v END)[1];
CREATE MACRO d_replace(x, a, b) AS
  CASE WHEN strlen(x) * strlen(b) > 65536 THEN error('a text is too long') ELSE replace(x, a, b) END;
CREATE MACRO d_regexp_replace(x, a, b) AS
  CASE WHEN strlen(x) * strlen(b) > 65536 THEN error('a text is too long') ELSE regexp_replace(x, a, b) END;
CREATE MACRO d_array_remove(a, x) AS
  list_filter(a, lambda v: v IS DISTINCT FROM x);
CREATE MACRO d_regtypes_text(a) AS
  CASE WHEN a IS NOT NULL THEN coalesce((SELECT list(coalesce(f__.said, '-') ORDER BY u__.n) FROM
  (SELECT unnest(a) AS o, unnest(range(len(a))) AS n) u__ LEFT JOIN main.written_types f__ ON f__.oid = u__.o), []) END;
