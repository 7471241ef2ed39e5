-- Durations in other units; results are whole numbers.
create perfetto function time_from_ns(ns LONG) returns DURATION as select $ns * 1;
create perfetto function time_to_ns(ns DURATION) returns LONG as select $ns / 1;
create perfetto function time_from_us(us LONG) returns DURATION as select $us * 1000;
create perfetto function time_to_us(ns DURATION) returns LONG as select $ns / 1000;
create perfetto function time_from_ms(ms LONG) returns DURATION as select $ms * 1000000;
create perfetto function time_to_ms(ns DURATION) returns LONG as select $ns / 1000000;
create perfetto function time_from_s(s LONG) returns DURATION as select $s * 1000000000;
create perfetto function time_to_s(ns DURATION) returns LONG as select $ns / 1000000000;
create perfetto function time_from_min(min LONG) returns DURATION as select $min * 60000000000;
create perfetto function time_to_min(ns DURATION) returns LONG as select $ns / 60000000000;
create perfetto function time_from_hours(hours LONG) returns DURATION as select $hours * 3600000000000;
create perfetto function time_to_hours(ns DURATION) returns LONG as select $ns / 3600000000000;
create perfetto function time_from_days(days LONG) returns DURATION as select $days * 86400000000000;
create perfetto function time_to_days(ns DURATION) returns LONG as select $ns / 86400000000000;
