-- The duration of each slice without its children.
create perfetto view slice_self_dur as
select parent.id, parent.dur - coalesce(sum(child.dur), 0) as self_dur
from slice parent left join slice child on child.parent_id = parent.id
group by parent.id, parent.dur;
