package dist

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/install"
)

const mostRanks = 1 << 16

// A rank's own variables override a launcher's; the others apply to any launcher.
const (
	variableRank        = "LAZO_RANK"
	variableSize        = "LAZO_SIZE"
	variableCoordinator = "LAZO_COORDINATOR" // host:port of rank 0
	variableListener    = "LAZO_LISTENER"    // rank 0's file descriptor, from package launch
	variableMPI         = "LAZO_MPI"         // path of libmpi, or "none"
	variableSecret      = "LAZO_SECRET"      // without MPI, the same on all ranks
	variableJob         = "LAZO_JOB"
	variableAttempt     = "LAZO_ATTEMPT"
	variableDeadline    = "LAZO_DEADLINE" // for time.ParseDuration
	// variableRun is where `lazo run` sees whether a rank has joined and not left.
	variableRun = "LAZO_RUN"
)

const noMPI = "none"

type place struct {
	launcher             string
	rank, size           int
	localRank, localSize int    // -1: unknown
	coordinator          string // of rank 0; "": sent by MPI
	byMPI                bool   // prepared by the launcher
	kind                 string // of the installed library
	job, attempt         string
	secret               string // "": made by rank 0 and sent by MPI
	library              string
	deadline             time.Duration
}

type launcher struct {
	name string
	mark string // set by this launcher
	rank, size,
	localRank, localSize string
	// without is rank 0's address; nil: $LAZO_COORDINATOR only.
	without func(get func(string) string) (string, error)
	// mpi is as install names it.
	mpi func(get func(string) string) string
	// job and attempt identify a start.
	job, attempt string
}

func always(kind string) func(func(string) string) string {
	return func(func(string) string) string { return kind }
}

// launchers that another starts come first.
var launchers = []launcher{
	{
		name: "LAZO_RANK", mark: variableRank, rank: variableRank, size: variableSize,
		localRank: "LAZO_LOCAL_RANK", localSize: "LAZO_LOCAL_SIZE",
	},
	{
		name: "Open MPI", mark: "OMPI_COMM_WORLD_RANK", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE",
		localRank: "OMPI_COMM_WORLD_LOCAL_RANK", localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
		mpi: always(install.MPI), job: "PMIX_NAMESPACE",
	},
	{ // MPICH's hydra, and srun --mpi=pmi2
		name: "PMI (MPICH)", mark: "PMI_RANK", rank: "PMI_RANK", size: "PMI_SIZE",
		localRank: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
		mpi: always(install.MPICH), job: "PMI_JOBID",
	},
	{ // batch scripts have SLURM_PROCID, but no task of a step
		name: "Slurm", mark: "SLURM_STEP_NUM_TASKS", rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS",
		localRank: "SLURM_LOCALID", without: slurmAddress, mpi: slurmMPI, job: "SLURM_JOB_ID", attempt: "SLURM_RESTART_COUNT",
	},
	{ // and Kubeflow's PyTorchJob
		name: "torchrun", mark: "WORLD_SIZE", rank: "RANK", size: "WORLD_SIZE", localRank: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE",
		without: torchAddress, job: "TORCHELASTIC_RUN_ID", attempt: "TORCHELASTIC_RESTART_COUNT",
	},
	{
		name: "Kubeflow JAXJob", mark: "COORDINATOR_ADDRESS", rank: "PROCESS_ID", size: "NUM_PROCESSES", without: jaxAddress,
	},
	{ // and JobSet; the file sets LAZO_SIZE: the number of completions is unknown
		name: "Kubernetes Indexed Job", mark: "JOB_COMPLETION_INDEX", rank: "JOB_COMPLETION_INDEX", size: variableSize,
	},
}

func find(get func(string) string) (place, error) {
	p := place{size: 1, localSize: 1, library: get(variableMPI), job: get(variableJob), attempt: get(variableAttempt)}
	if text := get(variableDeadline); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return place{}, fmt.Errorf("dist: $%s is %q, expected a time such as 30s", variableDeadline, text)
		}
		p.deadline = d
	}
	i := slices.IndexFunc(launchers, func(l launcher) bool { return get(l.mark) != "" })
	if i < 0 {
		for _, lone := range []string{variableSize, variableCoordinator} {
			if get(lone) != "" {
				return place{}, fmt.Errorf("dist: $%s is set, but no variable has the rank of this process: set $%s too", lone, variableRank)
			}
		}
		return p, nil
	}
	l := launchers[i]
	p.launcher = l.name
	var missing []string
	number := func(name string, least int) (n int) {
		text := get(name)
		if text == "" {
			missing = append(missing, "$"+name)
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			missing = append(missing, fmt.Sprintf("a number of at least %d in $%s (it is %q)", least, name, text))
		}
		return n
	}
	p.rank, p.size = number(l.rank, 0), number(l.size, 1)
	p.localRank, p.localSize = -1, -1
	if l.localRank != "" && l.localSize != "" && get(l.localRank) != "" && get(l.localSize) != "" {
		p.localRank, p.localSize = number(l.localRank, 0), number(l.localSize, 1)
	}
	if len(missing) > 0 {
		return place{}, fmt.Errorf("dist: $%s says that %s started this process, and it lacks %s", l.mark, l.name, strings.Join(missing, " and "))
	}
	if p.size > mostRanks {
		return place{}, fmt.Errorf("dist: %s gives %d ranks ($%s): expected at most %d", l.name, p.size, l.size, mostRanks)
	}
	if p.rank >= p.size {
		return place{}, fmt.Errorf("dist: %s gives rank %d ($%s) of %d ($%s): expected one below it", l.name, p.rank, l.rank, p.size, l.size)
	}
	if p.job == "" && l.job != "" {
		p.job = get(l.job)
	}
	if p.attempt == "" && l.attempt != "" {
		p.attempt = get(l.attempt)
	}
	if l.mpi != nil && p.library != noMPI {
		p.kind = l.mpi(get)
		p.byMPI = p.kind != ""
	}
	if p.size == 1 || p.byMPI {
		return p, nil
	}
	p.coordinator = get(variableCoordinator)
	if p.coordinator == "" && l.without != nil {
		var err error
		if p.coordinator, err = l.without(get); err != nil {
			return place{}, fmt.Errorf("dist: %s: %w: set $%s to the host:port at which rank 0 can be reached", l.name, err, variableCoordinator)
		}
	}
	if p.coordinator == "" {
		return place{}, fmt.Errorf("dist: %s gives rank %d of %d, but the address of rank 0 is unknown: set $%s to its host:port on all ranks",
			l.name, p.rank, p.size, variableCoordinator)
	}
	host, port, err := net.SplitHostPort(p.coordinator)
	if err != nil {
		return place{}, fmt.Errorf("dist: the address of rank 0: %w: expected host:port", err)
	}
	if p.localSize == p.size || host == "localhost" { // on one host; localhost may be two addresses, with another process at one
		p.coordinator = net.JoinHostPort("127.0.0.1", port)
	}
	if p.secret = get(variableSecret); len(p.secret) < leastSecret {
		return place{}, fmt.Errorf("dist: %s starts %d ranks without MPI, and $%s has %d bytes: set it on all ranks to the same random text of at least %d bytes, such as that of openssl rand -hex 16: ranks prove by it that they belong to the job",
			l.name, p.size, variableSecret, len(p.secret), leastSecret)
	}
	return p, nil
}

// leastSecret is in bytes: less can be guessed.
const leastSecret = 16

// slurmMPI: srun sets a variable to --mpi's choice; --mpi=pmi2 sets those of MPICH's launcher.
func slurmMPI(get func(string) string) string {
	if get("PMIX_RANK") != "" {
		return install.MPI
	}
	return ""
}

func slurmAddress(get func(string) string) (string, error) {
	host := firstHost(get("SLURM_STEP_NODELIST"))
	job, err := strconv.ParseUint(get("SLURM_JOB_ID"), 10, 64)
	if host == "" || err != nil {
		return "", errors.New("SLURM_STEP_NODELIST or SLURM_JOB_ID is missing")
	}
	step, _ := strconv.ParseUint(get("SLURM_STEP_ID"), 10, 64) // 0 without one
	if get("SLURM_STEP_NUM_NODES") == "1" {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("%s:%d", host, 61000+(job*16+step)%4500), nil
}

// firstHost of Slurm's "node[03-05,9],login" is node03.
func firstHost(list string) string {
	head, rest, bracket := strings.Cut(list, "[")
	if before, _, comma := strings.Cut(head, ","); comma || !bracket {
		return before
	}
	inside, tail, _ := strings.Cut(rest, "]")
	tail, _, _ = strings.Cut(tail, ",")
	first := strings.FieldsFunc(inside, func(r rune) bool { return r == ',' || r == '-' })
	if len(first) == 0 {
		return ""
	}
	return head + first[0] + tail
}

// torchAddress has MASTER_PORT, or the next port if torchrun's store uses it.
func torchAddress(get func(string) string) (string, error) {
	port, err := strconv.Atoi(get("MASTER_PORT"))
	if err != nil || get("MASTER_ADDR") == "" {
		return "", errors.New("MASTER_ADDR or MASTER_PORT is missing")
	}
	if strings.EqualFold(get("TORCHELASTIC_USE_AGENT_STORE"), "true") {
		port++
	}
	return fmt.Sprintf("%s:%d", get("MASTER_ADDR"), port), nil
}

func jaxAddress(get func(string) string) (string, error) {
	if get("COORDINATOR_ADDRESS") == "" || get("COORDINATOR_PORT") == "" {
		return "", errors.New("COORDINATOR_ADDRESS or COORDINATOR_PORT is missing")
	}
	return get("COORDINATOR_ADDRESS") + ":" + get("COORDINATOR_PORT"), nil
}
