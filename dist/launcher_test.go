package dist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	env := func(text string) func(string) string {
		values := map[string]string{}
		for _, pair := range strings.Fields(text) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = value
		}
		if strings.Contains(text, "=") && values[variableSecret] == "" {
			values[variableSecret] = secret
		}
		return func(name string) string { return values[name] }
	}
	for text, want := range map[string]place{
		"": {size: 1, localSize: 1},
		"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=1":                                      {size: 1, localSize: 1},                                                                             // a batch script
		"LAZO_RANK=1 LAZO_SIZE=2 LAZO_COORDINATOR=localhost:1":                              {launcher: "LAZO_RANK", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "127.0.0.1:1"}, // another process may have [::1]
		"LAZO_RANK=1 LAZO_SIZE=2 LAZO_COORDINATOR=h:1 LAZO_JOB=x LAZO_ATTEMPT=3 PMI_RANK=0": {launcher: "LAZO_RANK", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "h:1", job: "x", attempt: "3"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=n PMIX_RANK=1 SLURM_STEP_NUM_TASKS=1 LAZO_DEADLINE=3s": {launcher: "Open MPI", rank: 1, size: 4, localRank: 0, localSize: 2, byMPI: true, kind: "mpi", job: "n", deadline: 3 * second},
		"PMI_RANK=2 PMI_SIZE=3 SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=2":                                                       {launcher: "PMI (MPICH)", rank: 2, size: 3, localRank: -1, localSize: -1, byMPI: true, kind: "mpich"},
		"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_JOB_ID=70 SLURM_STEP_ID=2 PMIX_RANK=3":                                 {launcher: "Slurm", rank: 3, size: 4, localRank: -1, localSize: -1, byMPI: true, kind: "mpi", job: "70"},
		"SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_JOB_ID=70 SLURM_STEP_ID=2 SLURM_STEP_NODELIST=n[03-05,9],x":            {launcher: "Slurm", rank: 3, size: 4, localRank: -1, localSize: -1, coordinator: "n03:62122", job: "70"},
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_JOB_ID=70 SLURM_STEP_NODELIST=login,n[1-2]":                            {launcher: "Slurm", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "login:62120", job: "70"},
		"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=9 TORCHELASTIC_USE_AGENT_STORE=True": {launcher: "torchrun", rank: 1, size: 2, localRank: 1, localSize: 2, coordinator: "127.0.0.1:10"}, // on one host
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_JOB_ID=70 SLURM_STEP_NODELIST=n SLURM_STEP_NUM_NODES=1":                {launcher: "Slurm", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "127.0.0.1:62120", job: "70"},
		"RANK=1 WORLD_SIZE=2 MASTER_ADDR=m MASTER_PORT=9":                                                                   {launcher: "torchrun", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "m:9"},
		"COORDINATOR_ADDRESS=c COORDINATOR_PORT=6 NUM_PROCESSES=2 PROCESS_ID=0":                                             {launcher: "Kubeflow JAXJob", size: 2, localRank: -1, localSize: -1, coordinator: "c:6"},
		"JOB_COMPLETION_INDEX=1 LAZO_SIZE=2 LAZO_COORDINATOR=j-0.s:1":                                                       {launcher: "Kubernetes Indexed Job", rank: 1, size: 2, localRank: -1, localSize: -1, coordinator: "j-0.s:1"},
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 LAZO_MPI=none LAZO_COORDINATOR=h:1":                                  {launcher: "Open MPI", size: 2, localRank: -1, localSize: -1, coordinator: "h:1", library: "none"},
	} {
		if want.coordinator != "" {
			want.secret = secret // others have MPI, which distributes one
		}
		got, err := find(env(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"LAZO_RANK=1":                                "lacks $LAZO_SIZE",
		"LAZO_SIZE=2":                                "set $LAZO_RANK too",
		"LAZO_COORDINATOR=h:1":                       "set $LAZO_RANK too",
		"LAZO_RANK=2 LAZO_SIZE=2":                    "rank 2 ($LAZO_RANK) of 2 ($LAZO_SIZE)",
		"LAZO_RANK=2 LAZO_SIZE=99999999999":          "gives 99999999999 ranks ($LAZO_SIZE): expected at most 65536",
		"LAZO_RANK=x LAZO_SIZE=2":                    `a number of at least 0 in $LAZO_RANK (it is "x")`,
		"LAZO_RANK=0 LAZO_SIZE=2":                    "set $LAZO_COORDINATOR",
		"OMPI_COMM_WORLD_RANK=0":                     "Open MPI started this process, and it lacks $OMPI_COMM_WORLD_SIZE",
		"WORLD_SIZE=2":                               "lacks $RANK",
		"WORLD_SIZE=2 RANK=0":                        "MASTER_ADDR or MASTER_PORT is missing: set $LAZO_COORDINATOR",
		"JOB_COMPLETION_INDEX=0":                     "lacks $LAZO_SIZE",
		"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0":      "SLURM_STEP_NODELIST or SLURM_JOB_ID is missing",
		"COORDINATOR_ADDRESS=c NUM_PROCESSES=2":      "lacks $PROCESS_ID",
		"LAZO_DEADLINE=10":                           `$LAZO_DEADLINE is "10", expected a time such as 30s`,
		"LAZO_DEADLINE=-1s LAZO_RANK=0":              "expected a time",
		"PMI_RANK=0 PMI_SIZE=2 LAZO_MPI=none A=b":    "the address of rank 0 is unknown",
		"LAZO_RANK=0 LAZO_SIZE=2 LAZO_COORDINATOR=h": "missing port in address: expected host:port",
		"LAZO_RANK=0 LAZO_SIZE=2 LAZO_COORDINATOR=h:1 LAZO_SECRET=fifteen-bytes-": "$LAZO_SECRET has 14 bytes: set it on all ranks to the same random text of at least 16 bytes",
	} {
		_, err := find(env(text))
		require.ErrorContains(t, err, says, text)
	}
}
