package launch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// Options configure [Run].
type Options struct {
	// N is the number of ranks, at least 1.
	N       int
	Command []string
	// Mpirun is Open MPI's or MPICH's mpirun, a path or a name in PATH; "" is lazo's installed MPI.
	Mpirun string
	// NoMPI starts the ranks without MPI. Programs on the CPU then cannot exchange data.
	NoMPI bool
	// Env are additional variables, "NAME=value".
	Env []string
	// Dir is the ranks' working directory, by default this process's.
	Dir string
	// Stdin is rank 0's standard input.
	Stdin io.Reader
	// Stdout and Stderr receive the ranks' output; nil drops it. Without Verbose, Stdout is rank 0's only, and lines
	// of other ranks' standard error have the rank as prefix. A warning or error of several ranks (a line with WARN
	// or ERROR, or of the standard logger) appears once.
	Stdout, Stderr io.Writer
	// Verbose shows all ranks' output, each line with its rank, and mpirun's.
	Verbose bool
	// Restarts is the maximum number of restarts of a failed job, after pauses from 0.25 s to a minute, but not after
	// exit codes that would come again (docs/processes.md). $LAZO_ATTEMPT counts the starts, from 0.
	Restarts int
	// Min lets each restart use one rank fewer, down to Min. 0 means always N.
	Min int
	// Grace is the time for the ranks to end after the context ended or a rank failed, before they are killed; default
	// 30 s.
	Grace time.Duration

	said *sayings
}

// ExitError means that a job failed.
type ExitError struct {
	// Code is the exit code of the first rank that failed, or 128 plus the signal that ended it. Package dist has the
	// codes of lost and stuck ranks; a rank that ended with 0 while others ran is also [dist.ExitLost].
	Code     int
	Attempts int
	Said     string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("launch: the job ended with exit code %d", e.Code)
	if e.Attempts > 1 {
		text += fmt.Sprintf(", after %d starts", e.Attempts)
	}
	return text
}

const defaultGrace = 30 * time.Second

// told is longer than package dist's last message.
const told = 3 * time.Second

// stuck: Open MPI's mpirun sometimes deadlocks when several ranks fail at once.
const stuck = 10 * time.Second

// Run starts the ranks and waits until all have ended, or until mpirun has, which kills the rest. It returns an
// [*ExitError] if the job failed. When ctx ends, the ranks receive the signal of a [*loop.SignalError], except
// SIGHUP, else SIGTERM, and are killed after Grace.
func Run(ctx context.Context, o Options) error {
	switch {
	case o.N < 1:
		return fmt.Errorf("launch: %d ranks, expected at least 1", o.N)
	case len(o.Command) == 0:
		return errors.New("launch: no command")
	case o.Restarts < 0 || o.Min < 0 || o.Min > o.N:
		return fmt.Errorf("launch: %d restarts on at least %d of %d ranks: expected numbers from 0 to the number of ranks", o.Restarts, o.Min, o.N)
	case o.NoMPI && o.Mpirun != "":
		return fmt.Errorf("launch: both mpirun %s and no MPI are set: expected one of the two", o.Mpirun)
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	stdout, stderr := &outlet{to: o.Stdout}, &outlet{to: o.Stderr}
	o.Stdout, o.Stderr = stdout, stderr
	err := o.run(ctx)
	if failed := cmp.Or(stdout.failed(), stderr.failed()); err == nil && failed != nil {
		return fmt.Errorf("launch: output of the ranks is lost: %w", failed)
	}
	return err
}

func (o *Options) run(ctx context.Context) error {
	o.said = newSayings()
	by, err := o.launcher(ctx)
	if err != nil {
		return err
	}
	job := make([]byte, 8)
	_, _ = rand.Read(job) // never fails
	for attempt, n := 0, o.N; ; attempt++ {
		env := append(slices.DeleteFunc(os.Environ(), ofRank), o.Env...)
		env = append(env, fmt.Sprintf("LAZO_ATTEMPT=%d", attempt), "LAZO_JOB="+hex.EncodeToString(job))
		err := by.start(ctx, n, env)
		crashed := o.said.reset()
		if said := o.said.sum(); err != nil && said != "" {
			fmt.Fprint(o.Stderr, said)
		}
		failed := (*ExitError)(nil)
		if !errors.As(err, &failed) {
			return err
		}
		failed.Attempts = attempt + 1
		if ctx.Err() != nil || attempt == o.Restarts {
			return err
		}
		ended := fmt.Sprintf("lazo run: start %d of %d ended with exit code %d", attempt+1, o.Restarts+1, failed.Code)
		if why := comesAgain(failed.Code, crashed); why != "" {
			fmt.Fprintf(o.Stderr, "%s: no restart, since %s\n", ended, why)
			return err
		}
		if o.Min > 0 && n > o.Min {
			n--
		}
		wait := pause(attempt)
		fmt.Fprintf(o.Stderr, "%s: again in %v, on %d ranks\n", ended, wait, n)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// comesAgain: Go's runtime ends a panic with 2, as package flag wrong usage.
func comesAgain(code int, crashed bool) string {
	switch {
	case code == 126 || code == 127:
		return "the program cannot be started"
	case code == 2 && !crashed:
		return "the program was used wrongly"
	case code == dist.ExitDisagree:
		return "the ranks do not run the same program"
	}
	return ""
}

func pause(attempt int) time.Duration {
	return min(250*time.Millisecond<<min(attempt, 10), time.Minute)
}

func ofRank(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"LAZO_RANK", "LAZO_SIZE", "LAZO_COORDINATOR", "LAZO_SECRET", "LAZO_LISTENER", "LAZO_LOCAL_RANK", "LAZO_LOCAL_SIZE", "LAZO_RUN"}, name)
}

type starter interface {
	start(ctx context.Context, n int, env []string) error
}

func (o *Options) launcher(ctx context.Context) (starter, error) {
	if o.NoMPI {
		return &alone{o}, nil
	}
	m := &mpirun{Options: o, path: o.Mpirun}
	if o.Mpirun == "" {
		found, err := install.Find(install.MPI, "")
		if err != nil {
			return nil, fmt.Errorf("launch: %w: lazo install mpi, or name an mpirun", err)
		}
		m.path, m.library = found.Launcher(), found.Path
	}
	path, err := exec.LookPath(m.path)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	m.path = path
	said, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	switch {
	case bytes.Contains(said, []byte("Open MPI")) || bytes.Contains(said, []byte("OpenRTE")):
		m.open = true
	case bytes.Contains(said, []byte("HYDRA")):
	default:
		return nil, fmt.Errorf("launch: %s --version is neither Open MPI's nor MPICH's (%v): %.200q", path, err, said)
	}
	return m, nil
}

type mpirun struct {
	*Options
	path    string
	library string // for $LAZO_MPI; "" for the user's mpirun
	open    bool
}

// wrapper redirects each rank's output to its own pipes, which mpirun would mix, and records the process. Its first
// argument is the folder.
const wrapper = `d=$1; shift; r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; echo $$ >"$d/$r.pid"; exec "$@" >"$d/$r.1" 2>"$d/$r.2"`

func (m *mpirun) start(ctx context.Context, n int, env []string) (err error) {
	dir, said, err := makeFolder()
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer func() { err = errors.Join(err, said.Close(), os.RemoveAll(dir)) }()
	if m.library != "" {
		env = append(env, "LAZO_MPI="+m.library)
	}
	env = append(env, "LAZO_RUN="+dir)
	args := []string{"-np", fmt.Sprint(n)}
	if m.open {
		args = append(args, "--bind-to", "none") // else XLA's threads share one core per rank
		// Its folder is below dir, which a later start removes. In versions 4 and 5, as the next.
		env = append(env, "OMPI_MCA_orte_tmpdir_base="+dir, "PRTE_MCA_prte_tmpdir_base="+dir)
		// Allow more ranks than cores.
		env = append(env, "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
		if n > runtime.NumCPU() {
			env = append(env, "OMPI_MCA_mpi_yield_when_idle=1") // waiting ranks must not block the others
		}
		if os.Geteuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
		if _, err := owners.Home(); err != nil { // Open MPI does not start without one
			env = append(env, "HOME=/")
		}
	}
	cmd := exec.Command(m.path, append(append(args, "sh", "-c", wrapper, "sh", dir), m.Command...)...)
	cmd.Dir, cmd.Env = m.Dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = m.Stdin, said, said
	cmd.SysProcAttr = attributes(syscall.SIGTERM)
	cmd.WaitDelay = time.Second
	var pipes pipes
	defer pipes.close()
	for r := range n {
		if err := errors.Join(pipes.open(filepath.Join(dir, fmt.Sprintf("%d.1", r)), m.output(r, 1)),
			pipes.open(filepath.Join(dir, fmt.Sprintf("%d.2", r)), m.output(r, 2))); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	// Pdeathsig follows the starting thread: a killed `lazo run` leaves no ranks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	hung := make(chan struct{})
	watched, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	go func() {
		if outlives(watched, dir, n) {
			close(hung)
			signalAll(cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		signal := m.ending(ctx)
		for r := range n {
			if pid := noted(dir, r); pid > 0 {
				signalAll(pid, signal)
			}
		}
		select {
		case err = <-ended:
		case <-time.After(m.Grace):
			for r := range n {
				if pid := noted(dir, r); pid > 0 {
					signalAll(pid, syscall.SIGKILL)
				}
			}
			err = m.endHard(cmd, ended)
		}
	}
	pipes.drain()
	if err == nil {
		return m.allLeft(dir)
	}
	var last child.Tail
	_, reading := io.Copy(&last, io.NewSectionReader(said, 0, 1<<20))
	words := strings.TrimSpace(last.String())
	if words != "" && (m.Verbose || !pipes.complained || ctx.Err() == nil && bySignal.MatchString(words)) {
		fmt.Fprintln(m.Stderr, words)
	}
	if probe := filepath.Join(dir, "probe"); words == "" && ctx.Err() == nil { // mpirun's words may be lost
		if full := regular.Write(probe, make([]byte, 64<<10), 0o600); full != nil {
			fmt.Fprintf(m.Stderr, "lazo run: %s failed, and its messages are lost: %v: free space, or set $TMPDIR to another folder\n", filepath.Base(m.path), full)
		}
	}
	// Open MPI's mpirun may crash, and MPICH's mpiexec fails where a rank dies before MPI_Init.
	signal := child.Signal(err)
	failed := signal != 0 && ctx.Err() == nil || strings.Contains(words, "process manager error")
	if err = exitError(err, words); failed {
		err = &ExitError{Code: cmp.Or(failedBy(words), dist.ExitLost), Said: words}
	}
	select {
	case <-hung:
		code := failedBy(words)
		if code == 0 || m.Verbose {
			fmt.Fprintf(m.Stderr, "lazo run: %s did not end within %v of its last rank: it was killed\n", filepath.Base(m.path), stuck)
		}
		err = &ExitError{Code: cmp.Or(code, dist.ExitLost), Said: words}
	default:
		if signal != 0 && failed {
			fmt.Fprintf(m.Stderr, "lazo run: %s itself was ended by the signal %q\n", filepath.Base(m.path), signal)
		}
	}
	if exit := (*ExitError)(nil); m.open && errors.As(err, &exit) && exit.Code == 1 && improper(words) {
		exit.Code = dist.ExitLost
	}
	if exit := (*ExitError)(nil); !m.open && errors.As(err, &exit) && endedBySignal(words, exit.Code) {
		exit.Code += 128
	}
	return errors.Join(err, reading)
}

func outlives(ctx context.Context, dir string, n int) bool {
	const look = stuck / 20
	for since := time.Duration(0); since < stuck; since += look {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(look):
		}
		for r := range n {
			if pid := noted(dir, r); pid == 0 || runs(pid) {
				since = 0
				break
			}
		}
	}
	return true
}

// bySignal: the words name a rank that a signal ended, perhaps before its report.
var bySignal = regexp.MustCompile(`signal\s+\d+\s+\(|\(signal \d+\)`)

// rankFailed: Open MPI 4 and 5, which break lines, and MPICH. They also report daemons.
var rankFailed = regexp.MustCompile(`Exit\s+code:\s+(\d+)|(?:exited\s+on\s+signal|\(signal)\s+(\d+)`)

func failedBy(words string) int {
	found := rankFailed.FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	code, _ := strconv.Atoi(found[1])
	if signal, err := strconv.Atoi(found[2]); err == nil {
		code = 128 + signal
	}
	return code
}

// endedBySignal: MPICH's mpirun returned a signal's number.
func endedBySignal(words string, code int) bool {
	return strings.Contains(words, fmt.Sprintf("(signal %d)", code))
}

// improper: a rank ended early with code 0. Open MPI's mpirun then returns 1.
func improper(words string) bool {
	return strings.Contains(strings.Join(strings.Fields(words), " "), "exiting improperly")
}

// allLeft: MPICH's mpiexec may return 0 for ranks that did not leave.
func (m *mpirun) allLeft(dir string) error {
	notes, err := filepath.Glob(filepath.Join(dir, "*.joined"))
	if err != nil || len(notes) == 0 {
		return err
	}
	var ranks []string
	for _, note := range notes {
		ranks = append(ranks, strings.TrimSuffix(filepath.Base(note), ".joined"))
	}
	fmt.Fprintf(m.Stderr, "lazo run: the job was lost: rank %s ended without Job.Close, and %s ended with exit code 0\n", strings.Join(ranks, ", "), filepath.Base(m.path))
	return &ExitError{Code: dist.ExitLost}
}

func (m *mpirun) endHard(cmd *exec.Cmd, ended <-chan error) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case err := <-ended:
			return err
		case <-time.After(told):
			signalAll(cmd.Process.Pid, s)
		}
	}
	return <-ended
}

func noted(dir string, rank int) (pid int) {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.pid", rank)))
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(text), &pid) // 0 if half written
	return pid
}

// ending: SIGHUP ends most programs at once, and MPI libraries may ignore it.
func (o *Options) ending(ctx context.Context) syscall.Signal {
	signal := syscall.SIGTERM
	if by, ok := errors.AsType[*loop.SignalError](context.Cause(ctx)); ok && by.Signal != syscall.SIGHUP {
		signal = by.Signal
	}
	writing.Lock()
	defer writing.Unlock()
	fmt.Fprintf(o.Stderr, "lazo run: %v: the ranks receive the signal %q and have %v to end\n", context.Cause(ctx), signal, o.Grace)
	return signal
}

func exitError(err error, said string) error {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return fmt.Errorf("launch: %w", err)
	}
	code := exit.ExitCode()
	if signal := child.Signal(err); signal != 0 {
		code = 128 + int(signal)
	}
	return &ExitError{Code: code, Said: said}
}

type alone struct{ *Options }

func (a *alone) start(ctx context.Context, n int, env []string) error {
	// Rank 0 inherits the listener: another process could take a port.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("launch: a port for rank 0: %w", err)
	}
	coordinator := listener.Addr().String()
	port, err := listener.(*net.TCPListener).File()
	if err = errors.Join(err, listener.Close()); err != nil {
		return fmt.Errorf("launch: a port for rank 0: %w", err)
	}
	defer port.Close()
	env = append(env, "LAZO_COORDINATOR="+coordinator, "LAZO_SECRET="+rand.Text())
	ends := make(chan error, n)
	var running []*exec.Cmd
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kill := func(s syscall.Signal) {
		for _, cmd := range running {
			signalAll(cmd.Process.Pid, s)
		}
	}
	for r := range n {
		cmd := exec.Command(a.Command[0], a.Command[1:]...)
		cmd.Dir = a.Dir
		cmd.Env = append(env[:len(env):len(env)], fmt.Sprintf("LAZO_RANK=%d", r), fmt.Sprintf("LAZO_SIZE=%d", n))
		cmd.Stdout, cmd.Stderr = a.output(r, 1), a.output(r, 2)
		if r == 0 {
			cmd.Stdin = a.Stdin
			cmd.ExtraFiles, cmd.Env = []*os.File{port}, append(cmd.Env, "LAZO_LISTENER=3")
		}
		cmd.SysProcAttr = attributes(syscall.SIGKILL)
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			kill(syscall.SIGKILL)
			return fmt.Errorf("launch: %w", err)
		}
		if r == 0 { // after its end nothing may answer the others
			port.Close()
		}
		running = append(running, cmd)
		go func() {
			err := cmd.Wait()
			for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
				if l, ok := w.(*lines); ok {
					_ = l.end()
				}
			}
			ends <- err
		}()
	}
	var failed error
	var over <-chan time.Time
	done := ctx.Done()
	for left := n; left > 0; {
		select {
		case err := <-ends:
			left--
			if err == nil {
				continue
			}
			err = exitError(err, "")
			if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code >= dist.ExitLost && exit.Code <= dist.ExitFailed {
				over = time.After(told) // all running ranks know of the failure
			} else if failed == nil {
				over = time.After(a.Grace)
			}
			failed = cmp.Or(failed, err)
		case <-done:
			done = nil
			kill(a.ending(ctx))
			over = time.After(a.Grace)
		case <-over:
			kill(syscall.SIGKILL)
		}
	}
	for _, cmd := range running {
		for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
			if l, ok := w.(*lines); ok {
				_ = l.Close()
			}
		}
	}
	return failed
}
