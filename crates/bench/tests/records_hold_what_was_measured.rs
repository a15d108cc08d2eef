//! The figures of repetitions, and the name of a machine in a record.

#![cfg(test)]

use eyewall_bench::machine::Machine;
use eyewall_bench::spread::Spread;

#[test]
fn a_machine_is_named_by_processor_and_cores() {
    let machine = Machine {
        cpu: "Some CPU(R) @ 2 GHz".to_owned(),
        cores: 2,
        memory_mib: 1,
        kernel: "linux 6".to_owned(),
        disk_file_system: "ext4".to_owned(),
        shm_file_system: "tmpfs".to_owned(),
    };
    assert_eq!(machine.kind(), "some-2-ghz-2cores");
}

#[test]
fn an_even_number_of_samples_has_a_median_too() {
    let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
    assert_eq!(spread, Spread { median: 2.5, min: 1.0, max: 4.0 });
    assert_eq!(Spread::of(&[]), Spread { median: 0.0, min: 0.0, max: 0.0 });
}
