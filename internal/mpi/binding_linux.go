//go:build cgo

package mpi

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func warnings(w *World) []string {
	var set unix.CPUSet
	if unix.SchedGetaffinity(os.Getpid(), &set) != nil {
		return nil
	}
	return bindingWarnings(set.Count(), available("/"), w.LocalSize(), w.Library().Flavour() == OpenMPI && yields(os.Getenv))
}

func yields(get func(string) string) bool {
	on, err := strconv.ParseBool(get("OMPI_MCA_mpi_yield_when_idle"))
	return err == nil && on
}

func bindingWarnings(own, machine, processes int, yields bool) []string {
	switch {
	case machine == 0 || own == 0:
		return nil
	case processes > machine && yields:
		return []string{fmt.Sprintf("%d processes share %d processors: they take turns, so each waits for the others' computing: start at most one process for each processor", processes, machine)}
	case processes > machine:
		return []string{fmt.Sprintf("%d processes share %d processors: each that waits for others keeps one busy: start at most one process for each processor", processes, machine)}
	case own*processes < machine && own < machine:
		return []string{fmt.Sprintf("this process may use %d of %d processors, and %d processes share the machine: the launcher bound it: start with mpirun --bind-to none (Open MPI), "+
			"mpiexec -bind-to none (MPICH) or srun --cpus-per-task", own, machine, processes)}
	}
	return nil
}

// of the container or machine, 0 if unknown
func available(root string) int {
	groups, err := os.ReadFile(root + "proc/self/cgroup")
	if err == nil {
		for line := range strings.Lines(string(groups)) {
			if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				if text, err := os.ReadFile(root + "sys/fs/cgroup" + strings.TrimSuffix(group, "/") + "/cpuset.cpus.effective"); err == nil {
					if n := countCPUs(string(text)); n > 0 {
						return n
					}
				}
			}
		}
	}
	text, err := os.ReadFile(root + "sys/devices/system/cpu/online")
	if err != nil {
		return 0
	}
	return countCPUs(string(text))
}

// countCPUs counts a list like "0-3,8".
func countCPUs(list string) (n int) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil || to < from {
			return 0
		}
		n += to - from + 1
	}
	return n
}
