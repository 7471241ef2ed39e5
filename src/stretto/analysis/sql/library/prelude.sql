create perfetto macro cast_int(value Expr) returns Expr as cast($value as int);
create perfetto macro cast_double(value Expr) returns Expr as cast($value as real);
create perfetto macro cast_string(value Expr) returns Expr as cast($value as text);
