//! `mpirun -n N pasta ..`: real processes of MPI. Same bits on any number of ranks, one voice, and ends that can be resumed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pasta_opt::draws::{Address, Role};
use place::{PASTA, SGD, STATE, TestDir, with};
use serde_json::Value;

/// Batches that are drawn sample by sample, and certificates.
const STUDENT: &str = r#"seed = 1

[problem]
name = "quadratic"
spectrum = [2.0, 0.5, 1.0]
start = [1.0, 1.0, -1.0]

[noise]
tail = "student-t"
dof = 3.0
growth = 0.5
floor = 1.0

[recipe]
name = "sgd"
eta = 0.02
steps = 60
batch = 1500
"#;

/// The same without an end.
fn endless() -> String {
    with(STUDENT, "steps = 60", "steps = 1e15")
}

/// `mpirun` as it can run here: by root, on fewer cores than ranks.
fn mpirun() -> Command {
    // MPICH calls it mpirun.mpich where Open MPI is installed as well.
    let mut command = Command::new(std::env::var_os("MPIRUN").unwrap_or_else(|| "mpirun".into()));
    let variables = [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
        ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ];
    command.envs(variables).stdin(Stdio::null());
    command
}

trait OnRanks {
    fn on(&self, ranks: usize, words: &str) -> Command;
    fn output(&self, ranks: usize, words: &str) -> Output;
    fn step(&self, folder: &str) -> Option<u64>;
}

impl OnRanks for TestDir {
    /// `mpirun -n RANKS pasta WORDS` in this place.
    fn on(&self, ranks: usize, words: &str) -> Command {
        let mut command = mpirun();
        command.args(["-n", &ranks.to_string(), PASTA]).args(words.split_whitespace());
        // Where jobs begin at the same time, those of Open MPI get in each other's way in a common folder.
        command
            .current_dir(self.0.path())
            .env("OMPI_MCA_orte_tmpdir_base", self.0.path())
            .env(STATE, self.state());
        command
    }

    fn output(&self, ranks: usize, words: &str) -> Output {
        self.on(ranks, words).output().expect("mpirun is installed")
    }

    /// The step of the checkpoint in a folder, once there is one.
    fn step(&self, folder: &str) -> Option<u64> {
        let bytes = fs::read(self.path(folder).join("checkpoint.pasta")).ok()?;
        let header: Value = serde_json::from_slice(bytes.split(|b| *b == b'\n').nth(1)?).ok()?;
        let sections = header["sections"].as_array()?;
        sections.iter().find(|section| section["name"] == "baseline")?["data"][1]["step"].as_u64()
    }
}

/// A job that a failing test does not leave behind.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            signal("-TERM", self.0.id());
            let _ = self.0.wait();
        }
    }
}

fn signal(name: &str, process: u32) -> bool {
    Command::new("kill").args([name, &process.to_string()]).status().is_ok_and(|status| status.success())
}

/// The process with this rank, which works in `place`.
fn process(place: &TestDir, rank: usize) -> u32 {
    let names = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"].map(|name| format!("{name}={rank}"));
    let folder = fs::canonicalize(place.0.path()).unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let id: u32 = path.file_name()?.to_str()?.parse().ok()?;
        let here = fs::read_link(path.join("cwd")).ok()? == folder;
        let is_pasta = fs::read_link(path.join("exe")).ok()? == fs::canonicalize(PASTA).ok()?;
        let variables = fs::read(path.join("environ")).ok()?;
        let its = variables
            .split(|byte| *byte == 0)
            .any(|variable| names.iter().any(|name| name.as_bytes() == variable));
        (here && is_pasta && its).then_some(id)
    });
    processes.last().expect("a process of each rank")
}

impl Job {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun is installed"))
    }

    /// Waits until the checkpoint in `folder` has come to `step`.
    fn until(&mut self, place: &TestDir, folder: &str, step: u64) {
        // The ranks need the cores.
        for _ in 0..300_000 {
            if place.step(folder).is_some_and(|at| at >= step) {
                return;
            }
            if let Some(status) = self.0.try_wait().unwrap() {
                let mut said = String::new();
                self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the run ended before step {step}: {status}, {said}");
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("the run did not come to step {step}");
    }

    /// How it ended, and what was said.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut printed, mut said) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code(), printed, said)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lets the run in `folder` go on alone for some steps and compares it with one that was never stopped.
fn assert_same_as_uninterrupted(place: &TestDir, folder: &str) {
    assert_goes_on_alike(place, folder, 1500);
}

/// The same for steps of so many samples.
fn assert_goes_on_alike(place: &TestDir, folder: &str, batch: u64) {
    // A rank that was killed has gone when the system has let go of its trace.
    fs::File::open(place.path(folder).join("trace.jsonl")).and_then(|trace| trace.lock()).unwrap();
    let budget = batch * (place.step(folder).unwrap() + 30);
    place.pasta(&format!("resume {folder} --budget {budget}")).assert().code(5);
    place.pasta(&format!("solve p.toml --budget {budget} --output whole --overwrite")).assert().code(5);
    // How often a simulator had to be asked and started is not the run's.
    let of = |folder: &str| {
        let mut result: Value = serde_json::from_str(&place.read(&format!("{folder}/result.json"))).unwrap();
        result.as_object_mut().unwrap().remove("simulator");
        result
    };
    assert_eq!(of(folder), of("whole"));
    assert_eq!(place.read(&format!("{folder}/trace.jsonl")), place.read("whole/trace.jsonl"));
}

#[test]
fn any_number_of_ranks_prints_and_writes_what_one_process_does() {
    let certificate = "\n[certificate]\ntarget = 0.3\nvariance = 20\nshare = 0.8\npilot = 3000\n";
    let auto = "[recipe]\nname = \"auto\"\n";
    let start = STUDENT.find("[recipe]").unwrap();
    let certified = format!("{}{certificate}", endless());
    let auto = format!("budget = 20000\n{}{auto}", &STUDENT[..start]);
    for (problem, code) in [(STUDENT, 0), (certified.as_str(), 0), (auto.as_str(), 0)] {
        let place = TestDir::holding(problem);
        let alone = place.pasta("solve p.toml --output alone --json").output().unwrap();
        assert_eq!(alone.status.code(), Some(code), "{}", text(&alone.stderr));
        for ranks in [1, 2, 3, 4, 7] {
            let words = format!("solve p.toml --output on{ranks} --json --threads {}", 1 + ranks % 2);
            let together = place.output(ranks, &words);
            assert_eq!(together.status.code(), Some(code), "{}", text(&together.stderr));
            assert_eq!(text(&together.stdout), text(&alone.stdout), "{ranks} ranks");
            for file in ["result.json", "trace.jsonl", "checkpoint.pasta"] {
                let of = |folder: &str| fs::read(place.path(folder).join(file)).unwrap();
                assert_eq!(of(&format!("on{ranks}")), of("alone"), "{file} on {ranks} ranks");
            }
        }
    }
}

#[test]
fn calibrate_certify_and_plan_answer_as_one_process_does() {
    let place = TestDir::holding(STUDENT);
    for words in [
        "calibrate p.toml --budget 6400 --json",
        "certify p.toml --at 0.01,0.01,0.01 --target 0.5 --json",
        "plan smooth --smoothness 3 --gap 1 --growth 1 --floor 1 --target 0.1 --json",
        "problems --json",
    ] {
        let alone = place.pasta(words).output().unwrap();
        let together = place.output(3, words);
        assert_eq!(text(&together.stdout), text(&alone.stdout), "{words}: {}", text(&together.stderr));
        assert_eq!(together.status.code(), alone.status.code(), "{words}");
    }
}

#[test]
fn a_failure_is_told_once_and_ends_all_ranks_alike() {
    let place = TestDir::holding(&with(STUDENT, "dof = 3.0", "dof = 1.0"));
    for (words, complaint) in [
        ("solve p.toml", "error: p.toml:10: [noise] dof"),
        ("solve nothing.toml", "error: nothing.toml: No such file"),
        ("resume nothing", "there is no such folder"),
        ("solve p.toml --what", "unexpected argument '--what'"),
    ] {
        let output = place.output(3, words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert_eq!(said.matches(complaint).count(), 1, "{words}: {said}");
    }
    // Only the first knows that its folder is taken; the others hear of it.
    let place = TestDir::holding(STUDENT);
    place.pasta("solve p.toml --output run").assert().code(0);
    let output = place.output(3, "solve p.toml --output run");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("run already holds a run").count(), 1, "{said}");
}

#[test]
fn a_run_goes_on_bit_for_bit_on_another_number_of_ranks() {
    let place = TestDir::holding(&endless());
    assert_eq!(place.output(2, "solve p.toml --output run --budget 30000").status.code(), Some(5));
    assert_eq!(place.output(3, "resume run --budget 60000").status.code(), Some(5));
    assert_eq!(place.output(1, "resume run --budget 90000").status.code(), Some(5));
    assert_eq!(place.output(4, "resume run --budget 120000").status.code(), Some(5));
    place.pasta("solve p.toml --output whole --budget 120000").assert().code(5);
    for file in ["result.json", "trace.jsonl"] {
        assert_eq!(place.read(&format!("run/{file}")), place.read(&format!("whole/{file}")), "{file}");
    }
}

#[test]
fn a_signal_at_mpirun_ends_in_a_checkpoint() {
    for (name, ranks) in [("-TERM", 3), ("-INT", 2)] {
        let place = TestDir::holding(&endless());
        let mut command = place.on(ranks, "solve p.toml --output run --checkpoint-every inf");
        // Time for a checkpoint between the request to end and the end by force, also on a busy machine.
        let mut job = Job::start(command.env("OMPI_MCA_odls_base_sigkill_timeout", "5"));
        // With no checkpoints in between, only the first, before any step, is there until the signal.
        job.until(&place, "run", 0);
        assert!(signal(name, job.0.id()));
        let (code, _, said) = job.end();
        assert_ne!(code, Some(0), "{said}");
        assert_eq!(said.matches("go on with: pasta resume run").count(), 1, "{said}");
        assert_same_as_uninterrupted(&place, "run");
    }
}

#[test]
fn a_signal_at_any_rank_stops_all_of_them() {
    let place = TestDir::holding(&endless());
    let mut job = Job::start(&mut place.on(3, "solve p.toml --output run --checkpoint-every 0"));
    job.until(&place, "run", 3);
    assert!(signal("-INT", process(&place, 2)));
    let (code, _, said) = job.end();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said.matches("go on with: pasta resume run").count(), 1, "{said}");
    assert_same_as_uninterrupted(&place, "run");
}

/// Kills a rank, begins again on another number of ranks, and so on, so many times: which rank, after how many steps and on how many ranks
/// is random, and the same every time.
fn killed_at_random(place: &TestDir, times: u64, seed: u64, batch: u64) {
    let address = |sample| Address { seed, role: Role::Setup, step: 0, sample };
    let mut verb = "solve p.toml --output run";
    for time in 0..times {
        let mut draws = address(time).stream();
        let mut below = |bound: u64| (draws.uniform() * bound as f64) as u64;
        let (ranks, further) = (2 + below(3), 1 + below(25));
        let rank = below(ranks) as usize;
        let before = place.step("run").unwrap_or(0);
        let mut job = Job::start(&mut place.on(ranks as usize, &format!("{verb} --checkpoint-every 0")));
        job.until(place, "run", before + further);
        // It goes on meanwhile: where it is hit, in the middle of a step, of a message or of a checkpoint, is the machine's choice.
        assert!(signal("-KILL", process(place, rank)));
        let (code, _, said) = job.end();
        assert_ne!(code, Some(0), "{said}");
        assert!(!place.path("run/result.json").exists());
        verb = "resume run";
    }
    assert_goes_on_alike(place, "run", batch);
}

#[test]
fn a_rank_that_is_killed_takes_the_job_down_and_the_last_checkpoint_is_good() {
    killed_at_random(&TestDir::holding(&endless()), 5, 1, 1500);
}

#[test]
fn so_it_is_on_a_table() {
    let place = table();
    place.write("p.toml", &with(&place.read("p.toml"), "steps = 40", "steps = 1e15"));
    killed_at_random(&place, 3, 2, 6000);
}

#[test]
fn so_it_is_with_a_simulator() {
    let place = simulator(100, "1e9", "yes");
    killed_at_random(&place, 3, 3, 100);
    ranks_of_workers(&place);
}

#[test]
fn steps_that_are_too_cheap_to_share_still_stop_together() {
    // Gaussian batches are drawn whole: no rank can help another, and they talk only now and then.
    let place = TestDir::holding(&with(SGD, "steps = 1000", "steps = 1e15"));
    let mut command = place.on(3, "solve p.toml --output run --checkpoint-every 0");
    let mut job = Job::start(command.env("OMPI_MCA_odls_base_sigkill_timeout", "5"));
    job.until(&place, "run", 1000);
    assert!(signal("-TERM", job.0.id()));
    let (_, _, said) = job.end();
    assert_eq!(said.matches("go on with: pasta resume run").count(), 1, "{said}");
    let budget = place.step("run").unwrap() + 1000;
    place.pasta(&format!("resume run --budget {budget}")).assert().code(5);
    place.pasta(&format!("solve p.toml --budget {budget} --output whole")).assert().code(5);
    assert_eq!(place.read("run/trace.jsonl"), place.read("whole/trace.jsonl"));
}

/// Two hosts on this machine: network namespaces with an address each and a cable between them.
struct Hosts {
    names: [String; 2],
    cables: [String; 2],
}

const ADDRESSES: [&str; 2] = ["10.203.0.1", "10.203.0.2"];

fn ip(words: &str) -> bool {
    let output = Command::new("ip").args(words.split_whitespace()).output();
    output.is_ok_and(|output| output.status.success())
}

impl Hosts {
    /// `None` where that is not permitted.
    fn lay_out() -> Option<Self> {
        let number = std::process::id();
        let hosts = Self {
            names: [0, 1].map(|i| format!("pasta-{number}-{i}")),
            // Names of interfaces have fifteen letters at most.
            cables: [0, 1].map(|i| format!("pa{number}-{i}")),
        };
        let [one, other] = &hosts.cables;
        let made = hosts.names.iter().all(|name| ip(&format!("netns add {name}")))
            && ip(&format!("link add {one} type veth peer name {other}"));
        let joined = made
            && (0..2).all(|i| {
                let (name, cable, address) = (&hosts.names[i], &hosts.cables[i], ADDRESSES[i]);
                ip(&format!("link set {cable} netns {name}"))
                    && ip(&format!("-n {name} addr add {address}/24 dev {cable}"))
                    && ip(&format!("-n {name} link set lo up"))
                    && ip(&format!("-n {name} link set {cable} up"))
            });
        joined.then_some(hosts)
    }

    /// A program that takes the place of ssh: it runs a command on the host with an address.
    fn launcher(&self, place: &TestDir) -> PathBuf {
        let [first, second] = &self.names;
        let [one, other] = ADDRESSES;
        place.write(
            "launcher",
            &format!(
                "#!/bin/sh\nhost=$1; shift\ncase $host in {one}) name={first};; {other}) name={second};; *) exit 1;; esac\n\
                 exec ip netns exec $name unshare --uts sh -c \"hostname $name; $*\"\n"
            ),
        );
        let path = place.path("launcher");
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// `mpirun` on the first host, with a rank on each.
    fn mpirun(&self, place: &TestDir, words: &str) -> Command {
        let [name, _] = &self.names;
        place.write("hosts", &ADDRESSES.map(|address| format!("{address} slots=1\n")).concat());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, "unshare", "--uts", "sh", "-c"]);
        let launcher = self.launcher(place);
        let options = format!(
            "--hostfile hosts -n 2 --map-by node --mca plm_rsh_agent {} --mca plm_rsh_no_tree_spawn 1 \
             --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include 10.203.0.0/24 \
             --mca oob_tcp_if_include 10.203.0.0/24 \
             --mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 2",
            launcher.display()
        );
        command.arg(format!("hostname {name}; exec mpirun {options} {PASTA} {words}"));
        command.current_dir(place.0.path()).stdin(Stdio::null());
        let plain = mpirun();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    fn cut(&self) -> bool {
        ip(&format!("-n {} link set {} down", self.names[1], self.cables[1]))
    }

    /// Kills all that runs on both.
    fn kill(&self) {
        for name in &self.names {
            let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() else { continue };
            let processes = text(&output.stdout);
            processes.split_whitespace().filter_map(|process| process.parse().ok()).for_each(|process| {
                signal("-KILL", process);
            });
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.kill();
        self.names.iter().for_each(|name| {
            ip(&format!("netns del {name}"));
        });
    }
}

#[test]
fn two_hosts_work_together_and_one_that_is_cut_off_costs_nothing_but_time() {
    let version = mpirun().arg("--version").output().expect("mpirun is installed");
    if !text(&version.stdout).contains("Open MPI") {
        println!("skipped: two_hosts_work_together, whose options are those of Open MPI");
        return;
    }
    let Some(hosts) = Hosts::lay_out() else {
        println!("skipped: two_hosts_work_together, since network namespaces are not permitted here");
        return;
    };
    let place = TestDir::holding(STUDENT);
    let output = hosts.mpirun(&place, "solve p.toml --output on-two --json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place.pasta("solve p.toml --output alone").assert().code(0);
    for file in ["result.json", "trace.jsonl"] {
        assert_eq!(place.read(&format!("on-two/{file}")), place.read(&format!("alone/{file}")), "{file}");
    }
    place.write("p.toml", &endless());
    let mut job = Job::start(&mut hosts.mpirun(&place, "solve p.toml --output run --checkpoint-every 0"));
    job.until(&place, "run", 20);
    assert!(hosts.cut());
    // Until mpirun misses the other host, minutes may pass.
    hosts.kill();
    let (code, _, said) = job.end();
    assert_ne!(code, Some(0), "{said}");
    assert!(!place.path("run/result.json").exists());
    assert_same_as_uninterrupted(&place, "run");
}

/// An NPY file of doubles.
fn npy(place: &TestDir, name: &str, shape: &str, numbers: &[f64]) {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    // Ten bytes come before it, and a newline ends it.
    header.push_str(&" ".repeat((64 - (header.len() + 11) % 64) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    fs::write(place.path(name), bytes).unwrap();
}

/// A table of 20,000 rows and 16 columns, which is three blocks, with classes as labels.
fn table() -> TestDir {
    let place = TestDir::holding(
        "seed = 1\n\n[problem]\ntable = \"x.npy\"\nlabels = \"y.npy\"\nloss = \"logistic\"\n\n[recipe]\nname = \"sgd\"\neta = 0.5\nsteps = 40\nbatch = 6000\n",
    );
    let value = |row: usize, column: usize| (0.7 * (row * (column + 1)) as f64 + column as f64).sin();
    let rows = 0..20_000;
    let values: Vec<f64> =
        rows.clone().flat_map(|row| (0..16).map(move |column| value(row, column))).collect();
    let score = |row: usize| value(row, 0) + 0.5 * value(row, 3) + 0.4 * (5.1 * row as f64).sin();
    let labels: Vec<f64> = rows.map(|row| if score(row) > 0.0 { 1.0 } else { -1.0 }).collect();
    npy(&place, "x.npy", "(20000, 16)", &values);
    npy(&place, "y.npy", "(20000,)", &labels);
    place
}

#[test]
fn a_table_is_solved_and_fitted_alike_on_any_number_of_ranks() {
    let place = table();
    let fit = "fit x.npy --labels y.npy --loss logistic --json --output";
    let solved = place.pasta("solve p.toml --output alone --json").output().unwrap();
    let fitted = place.pasta(&format!("{fit} alone.json")).output().unwrap();
    assert_eq!((solved.status.code(), fitted.status.code()), (Some(0), Some(0)), "{}", text(&fitted.stderr));
    for ranks in [1, 2, 3, 4, 7] {
        let threads = 1 + ranks % 2;
        let output =
            place.output(ranks, &format!("solve p.toml --output on{ranks} --json --threads {threads}"));
        assert_eq!(text(&output.stdout), text(&solved.stdout), "{ranks} ranks: {}", text(&output.stderr));
        for file in ["result.json", "trace.jsonl", "checkpoint.pasta"] {
            let of = |folder: &str| fs::read(place.path(folder).join(file)).unwrap();
            assert_eq!(of(&format!("on{ranks}")), of("alone"), "{file} on {ranks} ranks");
        }
        let output = place.output(ranks, &format!("{fit} on{ranks}.json --threads {threads}"));
        assert_eq!(output.status.code(), Some(0), "{ranks} ranks: {}", text(&output.stderr));
        assert_eq!(place.read(&format!("on{ranks}.json")), place.read("alone.json"), "{ranks} ranks");
        // One voice: the line with all settings comes once.
        assert_eq!(text(&output.stderr).matches("x.npy: 20,000 rows").count(), 1);
    }
}

/// A text of words and numbers with 6,000 rows.
fn text_table() -> TestDir {
    let place = TestDir::new();
    let row = |i: usize| {
        let (a, b) = ((0.37 * i as f64).sin(), (0.11 * (i * i) as f64).cos());
        let kind = ["red", "green", "blue"][i * i % 7 % 3];
        let label = if a + 0.5 * b + 0.3 * (1.7 * i as f64).sin() > 0.1 { "yes" } else { "no" };
        format!("{a},{b},{kind},{label}\n")
    };
    let rows: String = (0..6000).map(row).collect();
    place.write("t.csv", &format!("a,b,kind,y\n{rows}"));
    let lines = rows.lines().map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{} 1:{} 2:{}\n", if cells[3] == "yes" { 1 } else { -1 }, cells[0], cells[1])
    });
    place.write("t.svm", &lines.collect::<String>());
    place
}

#[test]
fn a_text_is_read_once_on_a_machine_and_mapped_by_all_its_ranks() {
    let place = text_table();
    let csv = "fit t.csv --loss logistic --label y --one-hot --json --output";
    let svm = "fit t.svm --loss logistic --json --output";
    for (fit, name) in [(csv, "csv"), (svm, "svm")] {
        place.pasta(&format!("{fit} {name}.json")).assert().code(0);
        for ranks in [2, 3] {
            let output = place
                .on(ranks, &format!("{fit} {name}{ranks}.json"))
                .env("TMPDIR", place.0.path())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            assert_eq!(place.read(&format!("{name}{ranks}.json")), place.read(&format!("{name}.json")));
        }
    }
    // Through a cache, too, which one of them writes.
    let output = place.output(3, &format!("{svm} cached.json --cache"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(place.read("cached.json"), place.read("svm.json"));
    assert!(place.path("t.svm.cache/about.json").exists());
    // Nothing else is left.
    let left = fs::read_dir(place.0.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert_eq!(left.filter(|name| name.starts_with("pasta-table")).count(), 0);
    // What is wrong with it is said once.
    place.write("t.svm", "1 1:0.5\n-1 1:zero\n");
    let output = place.output(3, &format!("{svm} broken.json"));
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.matches("t.svm:2: column 6").count()), (Some(2), 1), "{said}");
    // Nowhere to put it.
    place.write("t.svm", "1 1:0.5\n-1 1:0.25\n");
    let output =
        place.on(2, &format!("{svm} nowhere.json")).env("TMPDIR", place.path("nowhere")).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("TMPDIR names another folder"), "{said}");
}

fn three_ranks_answer_as_one_process(place: &TestDir, words: &str) {
    let alone = place.pasta(words).output().unwrap();
    let together = place.output(3, words);
    assert_eq!(text(&together.stdout), text(&alone.stdout), "{words}: {}", text(&together.stderr));
    assert_eq!(together.status.code(), alone.status.code(), "{words}");
    assert!(!alone.stdout.is_empty(), "{words}: {}", text(&alone.stderr));
}

#[test]
fn certify_calibrate_and_compare_answer_on_tables_as_one_process_does() {
    let place = table();
    for words in [
        "certify p.toml --at 0.1 --target 0.5 --json",
        "calibrate p.toml --budget 6400 --json",
        "compare p.toml --budget 30000 --seeds 2 --methods auto,adam,sgd --grid --json",
    ] {
        three_ranks_answer_as_one_process(&place, words);
    }
}

#[test]
fn runs_of_a_comparison_are_shared_out_and_its_files_are_those_of_one_process() {
    let place = TestDir::holding(STUDENT);
    let words = "compare p.toml --budget 3000 --seeds 3 --json --csv";
    let alone = place.pasta(&format!("{words} alone.csv")).output().unwrap();
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));
    for ranks in [2, 7] {
        let together = place.output(ranks, &format!("{words} on{ranks}.csv"));
        assert_eq!(text(&together.stdout), text(&alone.stdout), "{ranks}: {}", text(&together.stderr));
        assert_eq!(place.read(&format!("on{ranks}.csv")), place.read("alone.csv"));
    }
}

#[test]
fn rows_from_standard_input_reach_all_ranks() {
    let place = TestDir::new();
    let rows: Vec<String> = (0..200).map(|i| format!("{},{}", i % 7, (i % 7) * 3 + i % 5)).collect();
    place.write("rows.csv", &format!("a,y\n{}\n", rows.join("\n")));
    let fit = "fit - --loss least-squares --label y --json";
    let alone = place.pasta(fit).write_stdin(place.read("rows.csv")).output().unwrap();
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));
    let mut command = place.on(3, fit);
    let input = fs::File::open(place.path("rows.csv")).unwrap();
    let together = command.stdin(input).output().expect("mpirun is installed");
    assert_eq!(text(&together.stdout), text(&alone.stdout), "{}", text(&together.stderr));
}

/// E |x - xi|^2/2 with xi normal around (1, -2). Each process leaves its number in `pids`; what goes wrong is in `fault`.
const SIM: &str = r#"
import os, random, sys
import pasta

open("pids", "a").write(f"{os.getpid()} {os.environ.get('OMPI_COMM_WORLD_RANK') or os.environ.get('PMI_RANK')}\n")
own = random.Random()


def sample(x, rng):
    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
    if os.path.exists("fault") and open("fault").read().split() == ["dies", rank]:
        print("the model is broken", file=sys.stderr, flush=True)
        os._exit(3)
    if os.environ.get("SEEDED") == "no":
        rng = own
    g = [v - rng.gauss((1.0, -2.0)[i % 2], 1.0) for i, v in enumerate(x)]
    return g, sum(v * v for v in g) / 2


pasta.serve(sample, losses=True, reproducible=os.environ.get("SEEDED") != "no", name="bowl")
"#;

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk");

/// A simulator, and SGD with batches of so many samples.
fn simulator(batch: u64, steps: &str, seeded: &str) -> TestDir {
    let place = TestDir::holding(&format!(
        "seed = 1\n\n[problem]\ncommand = [\"python3\", \"sim.py\"]\nenvironment = {{ PYTHONPATH = \"{SDK}\", SEEDED = \"{seeded}\" }}\n\
         dimension = 2\nstart = 3.0\nworkers = 1\nretries = 1\n\n[recipe]\nname = \"sgd\"\neta = 0.1\nsteps = {steps}\nbatch = {batch}\n"
    ));
    place.write("sim.py", SIM);
    place
}

/// The ranks whose workers ran in this place, of which none must be left.
fn ranks_of_workers(place: &TestDir) -> Vec<String> {
    let text = place.read("pids");
    let mut ranks = Vec::new();
    for line in text.lines() {
        let (pid, rank) = line.split_once(' ').unwrap();
        // One whose parent was killed is adopted, and waited for by whoever adopts it, if anybody does.
        let is_alive = || {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z")
        };
        let until = Instant::now() + Duration::from_secs(20);
        while is_alive() {
            assert!(Instant::now() < until, "worker {pid} of rank {rank} lives");
            thread::sleep(Duration::from_millis(20));
        }
        ranks.push(rank.to_owned());
    }
    ranks.sort();
    ranks.dedup();
    ranks
}

/// A result without what depends on the number of processes.
fn result(place: &TestDir, folder: &str) -> (Value, Value) {
    let mut result: Value = serde_json::from_str(&place.read(&format!("{folder}/result.json"))).unwrap();
    let simulator = result.as_object_mut().unwrap().remove("simulator").unwrap();
    (result, simulator)
}

#[test]
fn every_rank_asks_its_own_workers_and_the_bits_are_those_of_one_process() {
    let place = simulator(100, "15", "yes");
    place.pasta("solve p.toml --output alone").assert().code(0);
    let (alone, work) = result(&place, "alone");
    for ranks in [1, 2, 3, 4, 7] {
        let _ = fs::remove_file(place.path("pids"));
        let output = place.output(ranks, &format!("solve p.toml --output on{ranks}"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let (together, shared) = result(&place, &format!("on{ranks}"));
        assert_eq!(together, alone, "{ranks} ranks");
        let trace = |folder: &str| place.read(&format!("{folder}/trace.jsonl"));
        assert_eq!(trace(&format!("on{ranks}")), trace("alone"), "{ranks} ranks");
        // No sample is simulated twice, and every rank has had a worker.
        assert_eq!(shared["requests"], work["requests"], "{ranks} ranks");
        let expected: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
        assert_eq!(ranks_of_workers(&place), expected);
    }
    for words in [
        "calibrate p.toml --budget 6400 --json",
        "certify p.toml --at 1,-2 --target 0.5 --kurtosis 100 --json",
        "compare p.toml --budget 400 --seeds 2 --methods auto,adam --json",
    ] {
        three_ranks_answer_as_one_process(&place, words);
    }
}

#[test]
fn a_worker_that_fails_on_one_rank_stops_all_with_its_words_and_leaves_a_checkpoint() {
    let place = simulator(100, "1e9", "yes");
    let mut job = Job::start(&mut place.on(3, "solve p.toml --output run --checkpoint-every 0"));
    job.until(&place, "run", 5);
    place.write("fault", "dies 1");
    let (code, _, said) = job.end();
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("(on rank 1)") && said.contains("rank 1, worker 1: the model is broken"), "{said}");
    assert_eq!(said.matches("go on with: pasta resume run").count(), 1, "{said}");
    ranks_of_workers(&place);
    fs::remove_file(place.path("fault")).unwrap();
    let budget = 100 * (place.step("run").unwrap() + 5);
    place.pasta(&format!("resume run --budget {budget}")).assert().code(5);
    place.pasta(&format!("solve p.toml --budget {budget} --output whole")).assert().code(5);
    assert_eq!(place.read("run/trace.jsonl"), place.read("whole/trace.jsonl"));
}

#[test]
fn a_rank_that_is_killed_leaves_no_worker_of_any_rank() {
    let place = simulator(100, "1e9", "yes");
    let mut job = Job::start(&mut place.on(3, "solve p.toml --output run --checkpoint-every 0"));
    job.until(&place, "run", 5);
    assert!(signal("-KILL", process(&place, 1)));
    let (code, _, said) = job.end();
    assert_ne!(code, Some(0), "{said}");
    assert_eq!(ranks_of_workers(&place).len(), 3);
}

#[test]
fn ranks_agree_also_on_samples_that_cannot_be_repeated() {
    // Eight samples are one request, which one rank makes.
    for batch in [8, 100] {
        let place = simulator(batch, "10", "no");
        let output = place.output(3, "solve p.toml --output run");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("disagree"), "{}", text(&output.stderr));
    }
}
