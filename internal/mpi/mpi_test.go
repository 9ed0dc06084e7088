package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlavour(t *testing.T) {
	for f, want := range map[Flavour]string{OpenMPI: "Open MPI", MPICH: "MPICH", ABI: "MPI 5 ABI", 0: "flavour 0", 9: "flavour 9"} {
		require.Equal(t, want, f.String())
	}
}

// The first lines that libraries return for MPI_Get_library_version.
func TestVersionTexts(t *testing.T) {
	for text, want := range map[string][2]string{
		"Open MPI v4.1.4, package: Debian OpenMPI": {"Open MPI", "4.1.4"},
		"Intel(R) MPI Library 2021.12 for Linux":   {"Intel MPI", "2021.12"},
		"MVAPICH2 Version      :\t2.3.7":           {"MVAPICH", "2.3.7"},
		"\nMPICH Version:      4.0.2\nMPICH more":  {"MPICH", "4.0.2"},
		"another library":                          {},
	} {
		var found [2]string
		for _, v := range versionTexts {
			if m := v.text.FindStringSubmatch(text); m != nil {
				found = [2]string{v.name, m[1]}
				break
			}
		}
		require.Equal(t, want, found, text)
		require.Equal(t, want[0] != "" && want[0] != "Open MPI", isMPICH.MatchString(text), text)
	}
	require.Equal(t, "one", firstLine("\n one\ntwo"))
}
