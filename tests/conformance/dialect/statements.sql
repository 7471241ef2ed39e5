select i from v order by t

select t from v order by t

select t from v order by t desc

select r, i from v order by r desc, i

select t from v order by t collate nocase, i

select t from v order by i + 0 desc

select t from v order by 1

select t x from v order by x desc

select i from v order by t nulls last

select i from v order by n nulls first, i desc

select i, t from v order by -i

select i from v order by 'i', i

select t from v order by length(t), t

select i from v order by i limit 2

select i from v order by i limit 2 offset 1

select i from v order by i limit 1, 2

select i from v order by i limit -1

select i from v order by i limit -1 offset 2

select i from v order by i limit 2 offset -1

select i from v order by i limit 0

select i from v order by i limit 1 + 1

select i from v order by i limit '2'

select i from v order by i limit (select 2)

select i from v order by i limit null

select x from mixed order by x

select x from mixed order by x desc

select typeof(x), x from mixed

select distinct x from mixed

select x, count(*) from mixed group by x

select max(x), min(x) from mixed

select x from mixed where x > 1

select x from mixed where x = '1'

select x from mixed where x

select count(x), sum(x), avg(x), total(x) from mixed

select group_concat(x) from mixed

select 1 union select '1'

select 1 union select 1.0

select 1 union all select 'a'

select 1 as x union all select 'a' order by x

select 1 union select null

select 'a' union select x'61'

select 1 intersect select '1'

select 1 intersect select 1.0

select 1 except select '1'

select 1 except select 1.0

select i from v union select t from v

select i from v union all select t from v

select i from v union all select r from v

select i from v intersect select r from v

select i from v except select t from v

select t from v except select i from v

select n from v union all select t from v

select null union all select 1

select null as a union all select 'x'

select 1 union select 2 union all select 1 except select 2

select 1 union all select 2 intersect select 2

select 3 union select 1 union select 2

select 1 a, 2 b union all select 3, 4 order by b desc

select 1 where 1 = '1'

select i from v where i = '1'

select i from v where t = 1

select i from v where r = '1.5'

select i from v where t > 1

select i from v where t < 1

select i from v where i > '0'

select i from v where t

select i from v where r

select i from v where n

select i from v where not t

select i from v where 'a'

select i from v where '1'

select i from v where null

select i from v where b

select i from v where i in ('1', 2)

select i from v where i between '0' and '9'

select i from v where t like 'A%'

select i from v where t is 'a'

select i from v where t is not 'a'

select i from v where i is not n

select i from v where t = "a"

select i from v where t = "i"

select i from v where "i" = 1

select i from v where "nope" = 'nope'

select i from v where (i, t) = (1, 'a')

select i from v where (i, t) in (select i, t from v where i < 3)

select i, max(r) from v

select t, min(i) from v

select t, max(i), min(i) from v

select t, count(*) from v

select i, t, sum(r) from v group by i % 2

select t from v group by i % 2

select i % 2 k, count(*) from v group by k

select i % 2, count(*) from v group by 1

select i % 2 k, count(*) from v group by 1 having count(*) > 1

select count(*) c from v having c > 2

select count(*) from v having 0

select 1 from v having count(*) > 1

select 1 from v having 1

select i from v having i > 1

select max(i) from v where 0

select max(i), t from v where 0

select count(*), sum(i), total(i), avg(i), group_concat(t) from v where 0

select i, count(*) from v where 0 group by i

select sum(i) s from v group by i % 2 order by s

select i % 2, sum(i) from v group by i % 2 order by sum(i) desc

select i % 2, sum(i) from v group by i % 2 order by max(r)

select t, count(*) from v group by t having t > 1

select t, count(*) from v group by t having t

select t, sum(i) from v group by t collate nocase

select t, sum(i) from v group by upper(t)

select count(*) from v group by ()

select i, sum(i) from v group by null

select i, sum(i) from v group by 'x'

select i as t, t as i from v order by t

select i as t from v where t = 'a'

select i x, x + 1 from v

select i + 1 as x from v where x > 2

select i + 1 as x, count(*) from v group by x having x > 2

select distinct typeof(t) from v

select distinct i / 2 from v

select distinct i / 2, r > 2 from v

select all i from v

select v.* from v

select *, i + 1 from v

select v.*, 1 from v

select a.i, b.i from v a, v b where a.i < b.i

select a.i, b.i from v a join v b on a.i = b.t

select a.i, b.i from v a join v b on a.t = b.i

select a.i, b.r from v a left join v b on a.i = b.i and b.r > 2

select a.i, b.i from v a left join v b on a.i < b.i and b.t = 'b' where b.i is null

select a.i from v a left join v b using (i)

select * from v a join v b using (i)

select i, t from v a join v b using (i, t)

select * from (select i, t from v) natural join (select i, r from v)

select * from (select i from v) natural left join (select i, r from v where i < 2)

select * from (select i from v) natural join (select r from v)

select a.i, b.i from v a right join v b on a.i = b.i + 1

select a.i, b.i from v a full join v b on a.i = b.i + 1

select a.i, b.i from v a full outer join v b using (i)

select i from (select i from v where i < 3) full join (select i from v where i > 1) using (i)

select a.i, b.i from v a cross join v b on a.i = b.i

select a.i, b.i from v a inner join v b

select a.i, b.i from v a join v b where a.i = b.i

select a.i from v a left join v b on b.t where b.i = 1

select a.i from v a join v b on a.t

select a.i from v a, (select 1 as k) b where a.i = b.k

select a.i, (select b.t from v b where b.i = a.i + 1) from v a

select (select i from v where i > 1)

select (select i from v order by i desc)

select (select 1, 2)

select (select i from v where 0)

select exists (select * from v where i > 100), not exists (select 1)

select i from v a where exists (select 1 from v b where b.i > a.i and b.t > a.t)

select i from v where i = (select max(i) from v)

select i from v where i > (select avg(i) from v)

select i from v where t = (select i from v)

select i in (select i from v where i > 1) from v

with x as (select i from v) select * from x

with x(a, b) as (select i, t from v) select b, a from x where a > 1

with x as (select 1 a), y as (select a + 1 b from x) select * from x, y

with recursive x(n) as (select 1 union all select n + 1 from x where n < 5) select n from x

with recursive x(n) as (select 1 union select n % 3 + 1 from x) select n from x

with recursive x(n) as (values (1) union all select n + 1 from x limit 3) select n from x

with recursive x(n, s) as (select 1, 'a' union all select n + 1, s || 'b' from x where n < 3) select * from x

with recursive x(n) as (select 1 union all select n * 1.5 from x where n < 5) select n, typeof(n) from x

with recursive x(n) as (select 1 union all select n || '1' from x where length(n) < 3) select n, typeof(n) from x

with recursive x(n) as (select 3 union all select n - 1 from x where n order by 1 desc) select * from x

with recursive x(n) as (select 1 union all select n + 1 from x where n < 3), y(m) as (select max(n) from x) select m from y

with x(n) as (select 1 union all select n + 1 from x where n < 3) select n from x

with x as materialized (select 1 a) select a from x

with x as not materialized (select 1 a) select a from x

values (1, 'a'), (2, 'b')

values (1), ('a')

values (1), (2.5)

values (1), (null)

select * from (values (1, 2), (3, 4))

select column1 from (values (1), (2)) where column1 > 1

select * from (values (1, 'a')) x

select 1, 1.0, '1', x'31', null

select 1 as a, 2 as a

select 1 as "a b", 2 as [c d]

select 1 a, 2 'b'

select 1 + 1, 'x', "y", count(*), max( 3 )

select i+1, t||'x' from v where i = 1

select -i, not i, i is null from v

select I, T from V

select V.I from v

select i as I from v

select * from v where i = 1 and (t = 'a' or t = 'b') and not (r > 5)

select sum(i) from v where t glob 'a'

select count(*) from (select distinct t from v)

select count(*) from (select 1 union all select 1)

select * from (select i from v order by i desc limit 2) order by i

select i, sum(i) over w from v window w as (order by i)

select i, sum(i) over (w rows 1 preceding) from v window w as (order by i)

select i, row_number() over (order by t desc) from v

select i, rank() over (partition by i % 2 order by r desc) from v

select i, count(*) over (order by t) from v

select t, sum(sum(i)) over () from v group by t

select t, rank() over (order by sum(i) desc) from v group by t

select i, lag(t) over (partition by i % 2 order by i) from v order by i

select x, sum(x) over (order by x range between 1 preceding and 1 following) from (select i x from v)

select max(i) over (), * from v

select i from v where i in (select row_number() over () from v)

select total(i), typeof(total(i)) from v

select avg(i) from v group by i > 100

select sum(9223372036854775807) from v

select sum(i * 4611686018427387904) from v

select sum(i) + 9223372036854775807 from v

select sum(r) = sum(i) from v

select sum(i), sum(i) / 2, sum(i) / 2.0, sum(i) * 100.0 / 3 from v

select min(t), max(t) from v

select max(i, r, 3) from v

select min(i), min(r), min(i, r) from v

select group_concat(i || ':' || t, ' ') from v

select group_concat(distinct t) from v

select group_concat(t, ', ') from (select t from v order by i desc)

select i % 2, max(t) || 'x' from v group by 1

select i % 2, upper(t) || 'x', count(*) from v group by 1

select i % 2, t like 'a%', count(*) from v group by 1

select i % 2, cast(sum(r) as text) from v group by 1

select i % 2, group_concat(t) from v group by 1

create table a as select 1 as x, 'a' as y; select x, y, typeof(x) from a

create table a(x int, y text); insert into a values (1, 'a'); select * from a

create table a(x int, y text); insert into a values ('5', 5); select x, typeof(x), y, typeof(y) from a

create table a(x int); insert into a values ('abc'); select x, typeof(x) from a

create table a(x real); insert into a values (1); select x, typeof(x) from a

create table a(x); insert into a values (1), ('a'); select x, typeof(x) from a

create table a(x int primary key, y int default 5); insert into a(x) values (1); select * from a

create table a(x int); insert into a values (1); insert into a values (2); update a set x = x + 1; select * from a

create table a(x int); insert into a values (1), (2), (3); delete from a where x > 1; select * from a

create table a(x int); insert into a select i from v; select sum(x) from a

create table a(x text); insert into a values (1); select * from a where x = 1

create table a(x int); insert into a values (1); select * from a where x = '1'

create table a(x text); insert into a values ('1'); select x = 1, x = '1', x in (1) from a

create table a(x int, y text); insert into a values (1, '1'); select x = y, x = '1', y = 1 from a

create table a as select 1 x; drop table a; select 1

create table a(x text collate nocase); insert into a values ('A'); select * from a where x = 'a'

create temp table a as select 1 x; select * from a

create table if not exists a as select 1 x; select * from a

drop table if exists nothing; select 1

create view a as select i, t from v; select * from a where i = 1

create view a(p, q) as select i, t from v; select p, q from a

create perfetto table a as select 1 as x union all select 'a'; select * from a

create perfetto table a as select 1 as x union all select 2.5; select x, typeof(x) from a

create perfetto table a as select null as x; select x, typeof(x) from a

create perfetto table a as select 'a' as x, 1.5 as y, 3 as z; select *, typeof(y) from a where z = '3'

create perfetto table a(x LONG, y STRING) as select 1 as x, 'b' as y; select * from a

create perfetto table a(x STRING) as select 1 as x; select * from a

create perfetto table a(x LONG) as select 'b' as x; select * from a

create perfetto table a(x DOUBLE) as select 1 as x; select x, typeof(x) from a

create perfetto table a(x LONG) as select 1 as y; select * from a

create perfetto table a as select 1 as x; create perfetto table a as select 2 as x; select * from a

create perfetto view a as select i from v; select sum(i) from a

create perfetto view a(i LONG) as select i from v; select sum(i) from a

create perfetto function f(x LONG) returns LONG as select $x * 2; select f(2), f(i) from v

create perfetto function f(x LONG) returns LONG as select $x * 2; select f('a')

create perfetto function f(x LONG) returns LONG as select $x * 2; select f(1.5)

create perfetto function f(x LONG) returns LONG as select $x * 2; select f(null)

create perfetto function f(x STRING) returns STRING as select $x || 'y'; select f('x')

create perfetto function f(x STRING) returns STRING as select $x || 'y'; select f(5)

create perfetto function f(x LONG) returns STRING as select $x; select f(5), typeof(f(5))

create perfetto function f(x LONG) returns DOUBLE as select $x; select f(5), typeof(f(5))

create perfetto function f(x LONG) returns BOOL as select $x > 3; select f(5), f(1)

create perfetto function f(x LONG) returns LONG as select 1 where $x > 3; select f(5), f(1)

create perfetto function f(x DOUBLE) returns DOUBLE as select $x / 2; select f(5)

create perfetto function f() returns LONG as select 5; select f() + 1

create perfetto function f(x LONG) returns TABLE(y LONG, z STRING) as select $x as y, 'a' as z; select * from f(3)

create perfetto function f(x LONG) returns TABLE(y LONG) as select i as y from v where i > $x; select v.i, f.y from v join f(v.i) f

create perfetto function f(x LONG) returns LONG as select $x + 1; select f(1, 2)

create perfetto macro m(x Expr) returns Expr as $x + 1; select m!(2) * 3

create perfetto macro m(x Expr) returns Expr as ($x + 1); select m!(2) * 3, m!(m!(1))

create perfetto macro m(t TableOrSubquery) returns TableOrSubquery as (select count(*) c from $t); select * from m!(v), m!((select 1))

explain query plan select 1

select id from slice where id = '0'

select id from slice where id = 0.0

select name from slice where name = 5

select count(*) from slice where dur > '5'

select count(*) from slice where name > 5

select count(*) from slice where name < 5

select slice.id from slice, thread_track where slice.track_id = thread_track.name

select id from slice where id in ('0', '1')

select id from slice where id in (select '0')

select id from slice where cast(id as text) = '0'

select s.id from slice s join args a on s.name = a.int_value

select case depth when '0' then 'root' else 'child' end, count(*) from slice group by 1

select sum(depth = '0'), sum(depth < '1'), sum(depth is '1'), sum('1' = depth), sum(dur in ('5', '10')) from slice

select id from slice where id not in ('1', '2') and depth is '0'

select id from slice where depth = '0' or depth = ' 1.0'

select count(*) from slice where depth = '0'

select count(*) filter (where depth = '0') from slice

select s.id from slice s left join thread_track t on s.track_id = t.id and t.id is '1'

create perfetto table p as select 1 as x, 1.5 as r; select x = '1', x = '1.0', r = '1.5', x in ('1', '2'), x = 'a' from p

create table p as select 1 as x; select x = '1', x in ('1', '2') from p

select case cast(id as text) when 1 then 'a' else 'b' end, cast(id as int) = '1' from slice

select max(parent_id), id from slice where depth = 0

select min(parent_id), id from slice where depth = 0

select depth, max(parent_id), max(thread_dur), name, id from slice group by depth

select percentile(dur, 101) from slice

select id from slice order by rowid limit 1

select rowid, id from slice limit 2

select max(dur), name from slice

select name, dur from slice where dur = (select max(dur) from slice)

select name, ts / 1e9 from slice where id < 2

select ts / 1000000000, ts % 1000000000 from slice where id < 2

select name, sum(dur) * 100 / (select sum(dur) from slice) from slice group by name

select name, count(*) as n, avg(dur), max(dur), min(dur) from slice group by name order by n desc, name

select name from slice where name like '%A%'

select name from slice where name glob '*a*' order by 1

select s.name, t.utid from slice s left join thread_track t on s.track_id = t.id order by s.id

select typeof(id), typeof(ts), typeof(name), typeof(parent_id) from slice limit 1

select extract_arg(arg_set_id, 'nothing') from slice limit 1

select extract_arg(arg_set_id, 'debug.' || 'x') from slice where arg_set_id is not null

select key, display_value, typeof(int_value), typeof(string_value), typeof(real_value) from args

select name, ts, dur from slice where dur is -1

select sum(dur > 0), sum(dur = -1) from slice

select date(ts / 1000000000, 'unixepoch') from slice where id = 0

select x.value from json_each('[1, 2]') x

select value from generate_series(1, 3)

select * from pragma_table_info('slice') where name = 'dur'

select name from perfetto_table_info('slice') where name = 'dur'

select * from sqlite_master where name = 'nothing'

select type from sqlite_schema where name = 'slice'

pragma user_version

select i from v where i = 1;;

select 1; select 2

select 1 -- comment
, 2 /* other */

select i, iif(i > 1, t, 'one') from v indexed by nothing

select i from v not indexed where i = 1

select i from main.v where i = 1

select 1 from v limit 1 offset 100

select i from v where i = ?

select i from v where i = :x

select i from v where i = @x

select 5 in v

select i in w from v

select * from w

select (i, t) from v

select * from v where (1, 2)

select sum(i) from v where sum(i) > 1

select nothing from v

select * from nothing

select nothing(1)

select count(distinct i, t) from v

select max(distinct i), min(distinct t) from v

select i from v group by i order by count(*), i

select i, t from v where i = 1 union select i, t from v where i = 2 order by t desc limit 1

select * from (select 1 a union select 2) where a > 1

select coalesce(i, t) x from v where x = 1

select iif(i = 1, 'x', i) as y, typeof(iif(i = 1, 'x', i)) from v

select case when i = 1 then t else i end as y from v order by y

select case when i = 1 then t else i end as y, count(*) from v group by y

select max(case when i = 1 then t else i end) from v

select sum(case when i = 1 then t else i end) from v

select case when i > 1 then i end + 1 from v

select coalesce(i, t) || 'x' from v

select coalesce(i, t) = 1, coalesce(i, t) = '1' from v

select coalesce(i, t) + 1 from v

select length(coalesce(i, t)) from v

select upper(coalesce(t, i)) from v

select max(coalesce(i, t), 3) from v

select coalesce(i, r) from v

select i from v order by coalesce(t, i)

select nullif(t, i), typeof(nullif(t, i)) from v

select ifnull(n, 0) + ifnull(i, 0) from v

select min(i, t) from v

select distinct coalesce(n, i) from v

select i, cast(t as int) + 1 from v

select printf('%s: %d', t, i) from v order by i

select t || ' (' || i || ')' from v order by 1

select round(r / 3, 2) from v order by i

select r * 1000000000, r * 1e15, r / 3 from v order by i

select i * 1.0 from v order by i

select r || '' from v order by i

select distinct r from v union select i from v
