"""The events of the kernel that a category of atrace stands for, as far as Linux itself has them.

On Android a category also switches on events of programs. Elsewhere there is no such switch:
programs write to `trace_marker` at any time, and the event ftrace/print has their texts. Perfetto
records the kernel's events of a category on every system, so configs for Android work here too.
"""

from __future__ import annotations

CATEGORIES = {
    "binder_driver": (
        "binder/binder_transaction",
        "binder/binder_transaction_received",
        "binder/binder_transaction_alloc_buf",
        "binder/binder_set_priority",
    ),
    "binder_lock": ("binder/binder_lock", "binder/binder_locked", "binder/binder_unlock"),
    "disk": (
        "f2fs/f2fs_sync_file_enter",
        "f2fs/f2fs_sync_file_exit",
        "f2fs/f2fs_write_begin",
        "f2fs/f2fs_write_end",
        "f2fs/f2fs_iostat",
        "f2fs/f2fs_iostat_latency",
        "ext4/ext4_da_write_begin",
        "ext4/ext4_da_write_end",
        "ext4/ext4_sync_file_enter",
        "ext4/ext4_sync_file_exit",
        "block/block_bio_queue",
        "block/block_bio_complete",
        "ufs/ufshcd_command",
    ),
    "freq": (
        "power/cpu_frequency",
        "power/cpu_frequency_limits",
        "power/gpu_frequency",
        "power/clock_set_rate",
        "power/clock_disable",
        "power/clock_enable",
        "power/suspend_resume",
        "clk/clk_set_rate",
        "clk/clk_disable",
        "clk/clk_enable",
        "cpuhp/cpuhp_enter",
        "cpuhp/cpuhp_exit",
        "cpuhp/cpuhp_pause",
    ),
    "i2c": ("i2c/*",),
    "idle": ("power/cpu_idle",),
    "ion": ("kmem/ion_alloc_buffer_start",),
    "irq": (
        "irq/*",
        "irq/tasklet_entry",
        "irq/tasklet_exit",
        "irq/tasklet_hi_entry",
        "irq/tasklet_hi_exit",
        "ipi/*",
    ),
    "irqoff": ("preemptirq/irq_enable", "preemptirq/irq_disable"),
    "memory": (
        "kmem/rss_stat",
        "kmem/ion_heap_grow",
        "kmem/ion_heap_shrink",
        "ion/ion_stat",
        "mm_event/mm_event_record",
        "dmabuf_heap/dma_heap_stat",
        "gpu_mem/gpu_mem_total",
    ),
    "memreclaim": (
        "vmscan/mm_vmscan_direct_reclaim_begin",
        "vmscan/mm_vmscan_direct_reclaim_end",
        "vmscan/mm_vmscan_memcg_reclaim_begin",
        "vmscan/mm_vmscan_memcg_reclaim_end",
        "vmscan/mm_vmscan_kswapd_wake",
        "vmscan/mm_vmscan_kswapd_sleep",
    ),
    "mmc": ("mmc/*",),
    "pagecache": (
        "filemap/*",
        "filemap/filemap_set_wb_err",
        "filemap/file_check_and_advance_wb_err",
    ),
    "preemptoff": ("preemptirq/preempt_enable", "preemptirq/preempt_disable"),
    "regulators": ("regulator/*",),
    "sched": (
        "sched/sched_switch",
        "sched/sched_waking",
        "sched/sched_blocked_reason",
        "sched/sched_cpu_hotplug",
        "sched/sched_pi_setprio",
        "sched/sched_process_exit",
        "cgroup/*",
        "oom/oom_score_adj_update",
        "task/task_rename",
        "task/task_newtask",
    ),
    "sync": ("dma_fence/*",),
    "thermal": ("thermal/thermal_temperature", "thermal/cdev_update"),
    "workq": ("workqueue/*",),
}
"""Events by category. A group `GROUP/*` has only those that Perfetto has a message for."""
