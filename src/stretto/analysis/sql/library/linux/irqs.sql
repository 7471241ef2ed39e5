-- The kernel's interrupts.
create perfetto view linux_hard_irqs as
select ts, dur, slice.name, slice.id, slice.parent_id
from slice join track on slice.track_id = track.id where track.type = 'cpu_irq';

create perfetto view linux_soft_irqs as
select ts, dur, slice.name, slice.id
from slice join track on slice.track_id = track.id where track.type = 'cpu_softirq';

create perfetto view linux_irqs as
select ts, dur, name, id, parent_id, 0 as is_soft_irq from linux_hard_irqs
union all
select ts, dur, name, id, null as parent_id, 1 as is_soft_irq from linux_soft_irqs;
