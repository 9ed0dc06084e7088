package xla

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
)

// alike refuses ranks whose programs compute other bits: their copies of the parameters would drift apart.
func (a *across) alike(plugin Plugin, flags string) error {
	if a == nil {
		return nil
	}
	own := fmt.Sprintf("PJRT %s on %s, XLA_FLAGS=%q", plugin.API, runtime.GOARCH, withoutDumps(flags))
	if plugin.Kind == CPU {
		own += ", instructions " + instructions(flags, available())
	}
	all, err := a.job.AllGather([]byte(own))
	if err == nil {
		err = unlikeRanks(all)
	}
	if err != nil {
		return during(err, "open %q across %d processes", plugin.Kind, a.job.Size())
	}
	return nil
}

func unlikeRanks(all [][]byte) error {
	for rank, of := range all {
		if !bytes.Equal(of, all[0]) {
			return fmt.Errorf("rank %d has %s, and rank 0 has %s, so that equal programs would compute different bits: expected one plugin and one XLA_FLAGS on all ranks; "+
				"XLA_FLAGS=--%s=AVX2, or what the oldest host has, on all of them makes unlike CPUs compute alike", rank, of, all[0], maxISA)
		}
	}
	return nil
}

func withoutDumps(flags string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(flags), func(flag string) bool { return strings.HasPrefix(flag, "--xla_dump") }), " ")
}

const maxISA = "xla_cpu_max_isa"

// levels are XLA's names of instruction sets with which it computes other floats, from the oldest.
var levels = []string{"SSE4_2", "AVX", "AVX2", "AVX512", "AVX512_BF16", "AMX"}

func available() (level int) {
	x := cpu.X86
	for i, there := range []bool{x.HasSSE42, x.HasAVX, x.HasAVX2 && x.HasFMA, x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL, x.HasAVX512BF16, x.HasAMXBF16} {
		if there {
			level = i
		}
	}
	return level
}

// instructions returns the set that XLA uses: the host's, but none above the flag's.
func instructions(flags string, level int) string {
	for _, flag := range strings.Fields(flags) {
		if name, is := strings.CutPrefix(flag, "--"+maxISA+"="); is {
			name, _, _ = strings.Cut(strings.ToUpper(name), "_VNNI")
			if i := slices.Index(levels, name); i >= 0 {
				level = min(level, i)
			}
		}
	}
	return levels[level]
}
