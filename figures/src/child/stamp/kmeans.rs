//! kmeans: puts points into clusters, each around its centre. A thread takes some points, finds the
//! nearest centre of each, and adds the point to the sums of that cluster in a transaction. When
//! all points are done, the means are the new centres, until few points change their cluster.
//!
//! `child.rs` calls `kmeans`, and `figures/src/stamp.rs` gives the numbers.

use super::numbers::{EXACT, Random, mixed};
use super::threads::{timed, together};
use crate::child::fault;
use selvedge_stm::{TVar, TWord, Tried, Tx, atomically};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The size of a run, as the options of STAMP have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cloud {
    /// `-m` and `-n`: the number of clusters.
    pub(crate) clusters: u64,
    /// The number of points.
    pub(crate) points: u64,
}

/// The dimensions of a point.
const DIMENSIONS: usize = 32;

/// The number of points that a thread takes at a time.
const CHUNK: u64 = 3;

/// When fewer points than one in this number have changed their cluster, the centres are final.
const FINAL: u64 = 1000;

/// Whole numbers, because their sums do not depend on the order of the additions.
type Coordinates = [i16; DIMENSIONS];

/// Points around as many places as there are clusters.
fn points(cloud: &Cloud) -> Vec<Coordinates> {
    let mut random = Random::new(0);
    let mut coordinate = |bound| random.below(bound) as i16;
    let places: Vec<Coordinates> =
        (0..cloud.clusters).map(|_| std::array::from_fn(|_| coordinate(200))).collect();
    let near = |number: u64| {
        let place = places[(number % cloud.clusters) as usize];
        place.map(|at| at + coordinate(1000))
    };
    (0..cloud.points).map(near).collect()
}

fn nearest(centres: &[Coordinates], point: &Coordinates) -> usize {
    let distance = |centre: &Coordinates| -> i32 {
        let parts = centre.iter().zip(point).map(|(one, other)| i32::from(one - other));
        parts.map(|part| part * part).sum()
    };
    let mut best = (i32::MAX, 0);
    for (number, centre) in centres.iter().enumerate() {
        best = best.min((distance(centre), number));
    }
    best.1
}

/// The points of a cluster: how many, and the sum of each coordinate.
#[derive(Clone, Debug)]
struct Sums {
    count: i64,
    sums: [i64; DIMENSIONS],
}

impl Sums {
    const ZERO: Sums = Sums { count: 0, sums: [0; DIMENSIONS] };

    fn with(&self, point: &Coordinates) -> Sums {
        let mut sums = self.sums;
        for (sum, at) in sums.iter_mut().zip(point) {
            *sum += i64::from(*at);
        }
        Sums { count: self.count + 1, sums }
    }

    fn mean(&self) -> Option<Coordinates> {
        (self.count > 0).then(|| self.sums.map(|sum| (sum / self.count) as i16))
    }
}

/// The state that the threads share.
struct Clustering {
    points: Vec<Coordinates>,
    /// The cluster of each point. Only the thread that has taken a point writes it.
    clusters: Vec<AtomicU32>,
    sums: Vec<TVar<Sums>>,
    /// The next point to take.
    next: TWord<u64>,
    /// The points that have changed their cluster.
    changed: TWord<u64>,
}

impl Clustering {
    fn new(cloud: &Cloud) -> Clustering {
        let points = points(cloud);
        Clustering {
            clusters: points.iter().map(|_| AtomicU32::new(u32::MAX)).collect(),
            points,
            sums: (0..cloud.clusters).map(|_| TVar::new(Sums::ZERO)).collect(),
            next: TWord::new(0),
            changed: TWord::new(0),
        }
    }

    fn take(&self, tx: &Tx) -> Tried<u64> {
        self.next.swap(tx, self.next.read(tx)? + CHUNK)
    }

    /// Takes points until there are none.
    async fn assign(&self, centres: &[Coordinates]) {
        let mut changed = 0;
        loop {
            let first = atomically(|tx| self.take(tx)).await as usize;
            let last = self.points.len().min(first + CHUNK as usize);
            if first >= last {
                break;
            }
            for (point, own) in self.points[first..last].iter().zip(&self.clusters[first..last]) {
                let cluster = nearest(centres, point);
                changed += u64::from(own.swap(cluster as u32, Ordering::Relaxed) != cluster as u32);
                let sums = &self.sums[cluster];
                atomically(|tx| sums.modify(tx, |sums| sums.with(point))).await;
            }
        }
        atomically(|tx| self.changed.modify(tx, |sum| sum + changed)).await;
    }

    /// The means, in place of the centres. The sums and counters are as at the begin afterwards.
    fn means(&self, tx: &Tx, centres: &[Coordinates]) -> Tried<Vec<Coordinates>> {
        self.next.write(tx, 0);
        self.changed.write(tx, 0);
        let mean =
            |(sums, old): (&TVar<Sums>, &Coordinates)| Ok(sums.swap(tx, Sums::ZERO)?.mean().unwrap_or(*old));
        self.sums.iter().zip(centres).map(mean).collect()
    }
}

fn checksum(centres: &[Coordinates]) -> u64 {
    centres.as_flattened().iter().fold(0, |sum, &at| mixed(sum, at as u64)) & EXACT
}

/// The checksum of the centres, and the number of rounds: a run must print them.
pub(crate) fn expected(cloud: &Cloud) -> (u64, u64) {
    let points = points(cloud);
    let mut clusters = vec![usize::MAX; points.len()];
    let mut centres = points[..cloud.clusters as usize].to_vec();
    for round in 1.. {
        let mut sums = vec![Sums::ZERO; centres.len()];
        let mut changed = 0;
        for (point, own) in points.iter().zip(&mut clusters) {
            let cluster = nearest(&centres, point);
            changed += u64::from(*own != cluster);
            *own = cluster;
            sums[cluster] = sums[cluster].with(point);
        }
        for (centre, sums) in centres.iter_mut().zip(&sums) {
            *centre = sums.mean().unwrap_or(*centre);
        }
        if changed * FINAL < cloud.points {
            return (checksum(&centres), round);
        }
    }
    unreachable!("the rounds have no end")
}

/// Threads that share the points.
pub(in crate::child) fn kmeans(threads: u64, cloud: Cloud) {
    let clustering = Arc::new(Clustering::new(&cloud));
    let (mut centres, rounds) = timed(threads, async move {
        let mut centres = clustering.points[..cloud.clusters as usize].to_vec();
        for round in 1.. {
            let shared = Arc::new(centres);
            together(threads, |_| {
                let (clustering, centres) = (clustering.clone(), shared.clone());
                async move { clustering.assign(&centres).await }
            })
            .await;
            let changed = clustering.changed.read_now();
            centres = atomically(|tx| clustering.means(tx, &shared)).await;
            if changed * FINAL < cloud.points {
                return (centres, round);
            }
        }
        unreachable!("the rounds have no end")
    });
    // A run that is to be wrong has another centre.
    centres[0][0] ^= fault() as i16;
    println!("rounds {rounds}");
    println!("checksum {}", checksum(&centres));
}
