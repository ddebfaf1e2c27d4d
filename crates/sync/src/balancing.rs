//! Which of several threads, each bound to a core, a connection is given to.
//!
//! ```text
//!   packets of a client ──► core 0's part of the kernel ──► core 0's thread      one cache, nobody else is woken
//!                                                     └───► core 1's thread      all that they share goes from cache to cache
//! ```
//! Of a client on this machine the core that its packets come to is the one that it runs on, of
//! another machine's the one that the network card's queue interrupts (Pesterev, Strauss, Zeldovich
//! and Morris, "Improving Network Connection Locality on Multicore Systems", EuroSys 2012).

/// How many connections the thread of a core has.
pub struct Load {
    pub core: usize,
    pub open: usize,
}

/// The place in `loads` of who gets a connection whose packets come to `core`: that core's thread,
/// unless it has many more than another; else who has fewest.
///
/// # Panics
/// Where there is nobody.
pub fn deal(loads: &[Load], core: Option<usize>) -> usize {
    let by_open = (0..loads.len()).min_by_key(|&n| loads[n].open);
    let fewest = by_open.expect("somebody to deal to");
    // Enough that clients of several threads, which connect at their own pace, come to their cores,
    // and so few that a pool that one thread fills does not fill one core. Of a few connections
    // none is to wait for another while a core is idle.
    let most = loads[fewest].open + loads[fewest].open / 8;
    let near = loads.iter().position(|load| Some(load.core) == core);
    near.filter(|&near| loads[near].open <= most)
        .unwrap_or(fewest)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// How many connections each of the threads on `cores` has when some have come whose packets
    /// come to these.
    fn dealt(cores: &[usize], arrivals: impl IntoIterator<Item = Option<usize>>) -> Vec<usize> {
        let mut loads: Vec<_> = cores.iter().map(|&core| Load { core, open: 0 }).collect();
        for core in arrivals {
            let chosen = deal(&loads, core);
            loads[chosen].open += 1;
        }
        loads.iter().map(|load| load.open).collect()
    }

    #[test]
    fn a_connection_is_dealt_to_the_core_that_its_packets_come_to() {
        let of_each = |n: usize| [1, 3, 2].into_iter().cycle().map(Some).take(n);
        assert_eq!(dealt(&[3, 2, 1], of_each(300)), [100, 100, 100]);
        let loads = [Load { core: 4, open: 9 }, Load { core: 5, open: 8 }];
        assert_eq!(deal(&loads, Some(4)), 0);
        assert_eq!(deal(&loads, Some(5)), 1);
        assert_eq!(deal(&loads, None), 1);
    }

    #[test]
    fn a_pool_that_one_core_fills_is_spread() {
        for (connections, most) in [(2, 1), (3, 2), (16, 8), (100, 53), (1000, 530)] {
            let counts = dealt(&[0, 1], std::iter::repeat_n(Some(1), connections));
            assert_eq!(counts.iter().sum::<usize>(), connections);
            assert!(counts[1] <= most, "{counts:?}");
        }
    }

    #[test]
    fn without_a_core_of_ours_the_thread_with_fewest_is_chosen() {
        for core in [None, Some(7)] {
            assert_eq!(dealt(&[0, 1, 2], [core; 30]), [10, 10, 10]);
        }
    }
}
