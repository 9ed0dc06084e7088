package dist_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
)

// joins are the ways in which ranks are joined.
var joins = map[string]func(*launch.Options){
	"MPI":     func(*launch.Options) {},
	"control": func(o *launch.Options) { o.NoMPI, o.Mpirun = true, "" },
}

// S56: rank 0 of a job of one host listens on its loopback interface alone.
func TestJob_agreement(t *testing.T) {
	t.Parallel()
	for name, by := range joins {
		t.Run(name, func(t *testing.T) {
			if !ranks.Over(t, 3, by) {
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			r := job.Rank()
			require.Equal(t, 3, job.Size())
			require.Equal(t, r, job.LocalRank())
			require.Equal(t, 3, job.LocalSize())
			require.Equal(t, name == "MPI", len(job.Handlers()) > 0)
			t.Log(job)
			if r == 0 {
				require.Regexp(t, `^127\.0\.0\.1:`, job.Listened())
			}

			for _, n := range []int{0, 1, 10, 11, 1000} {
				words := make([]int64, n)
				for i := range words {
					words[i] = int64((i*7+r*5)%11) - 100
				}
				require.NoError(t, job.Agree(words))
				for i := range words {
					require.Equal(t, max(int64(i*7%11), int64((i*7+5)%11), int64((i*7+10)%11))-100, words[i])
				}
			}
			require.NoError(t, job.Barrier("here"))

			for _, n := range []int{0, 1, 100_000} {
				data := make([]byte, n)
				for i := range data {
					data[i] = byte(i + r)
				}
				got, err := job.Broadcast(data)
				require.NoError(t, err)
				require.Len(t, got, n)
				for i := range got {
					require.Equal(t, byte(i), got[i])
				}
			}

			part := []byte(fmt.Sprint("rank ", r))[:5+r%2]
			parts, err := job.AllGather(part)
			require.NoError(t, err)
			require.Equal(t, []string{"rank ", "rank 1", "rank "}, []string{string(parts[0]), string(parts[1]), string(parts[2])})

			// Calls that differ are an error on all ranks, and the job continues.
			err = job.Agree(make([]int64, 2+r/2))
			require.ErrorContains(t, err, "Agree of 2 words by rank 0, 1, Agree of 3 words by rank 2")
			name := "validation"
			if r == 1 {
				name = "test"
			}
			err = job.Barrier(name)
			require.ErrorContains(t, err, `Barrier "validation" by rank 0, 2, Barrier "test" by rank 1`)
			if r == 0 {
				_, err = job.Broadcast(nil)
			} else {
				err = job.Agree(nil)
			}
			require.ErrorContains(t, err, `Broadcast by rank 0, Agree of 0 words by rank 1, 2`)
			require.NoError(t, job.Barrier("end"))
			require.NoError(t, job.Close())
			require.NoError(t, job.Close())
			require.ErrorContains(t, job.Barrier("later"), "closed")
		})
	}
}

// Where the programs of all ranks end by errors, each goes with its own; the one that comes last ends them.
func TestJob_leave(t *testing.T) {
	t.Parallel()
	for name, by := range joins {
		t.Run(name, func(t *testing.T) {
			if ranks.Inside(t) {
				job, err := dist.Join(t.Context(), dist.OnFailure(func(f *dist.Failure) { fmt.Fprintln(os.Stderr, "the job has failed:", f) }))
				require.NoError(t, err)
				own := fmt.Errorf("error of rank %d", job.Rank())
				<-time.After(time.Duration(job.Rank()*200) * time.Millisecond)
				require.Same(t, own, job.Leave(own))
				require.Same(t, own, job.Leave(own), "again")
				require.NoError(t, job.Close())
				require.ErrorContains(t, job.Barrier("later"), "closed")
				loop.Exit(own)
			}
			said, err := ranks.Start(t, 3, by)
			failed := (*launch.ExitError)(nil)
			require.ErrorAs(t, err, &failed, said)
			require.Equal(t, 1, failed.Code, said)
			require.NotContains(t, said, "the job has failed", said)
			require.Contains(t, said, "error of rank 0", said)
		})
	}
}

// A program ends while another rank continues: its call to Close differs from the other's, and both end with that
// error, which Leave returns. No rank counts as lost.
func TestJob_leaveAfterClose(t *testing.T) {
	t.Parallel()
	for name, by := range joins {
		t.Run(name, func(t *testing.T) {
			if ranks.Inside(t) {
				job, err := dist.Join(t.Context())
				require.NoError(t, err)
				if job.Rank() == 0 {
					err = job.Barrier("an evaluation")
				}
				err = job.Leave(err)
				require.ErrorIs(t, err, dist.ErrDisagree)
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1) // not by loop.Exit, which would tell it too
			}
			said, err := ranks.Start(t, 2, by)
			failed := (*launch.ExitError)(nil)
			require.ErrorAs(t, err, &failed, said)
			require.Equal(t, 1, failed.Code, said)
			require.NotContains(t, said, "Error Trace", said)
			require.Contains(t, said, `Barrier "an evaluation" by rank 0, Close by rank 1`)
			require.NotContains(t, said, "the job of 2 ranks has ended", said)
		})
	}
}

func TestJob_alone(t *testing.T) {
	job, err := dist.Join(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, 1, job.Size())
	require.Zero(t, job.Rank())
	require.Equal(t, 1, job.LocalSize())
	require.Empty(t, job.Handlers())
	words := []int64{3}
	require.NoError(t, job.Agree(words))
	require.Equal(t, []int64{3}, words)
	parts, err := job.AllGather([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("x")}, parts)
	data, err := job.Broadcast([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, []byte("x"), data)
	job.At(1, "data")
	job.Busy("save", 1)()
	job.Fail(nil)
	lost := errors.New("lost")
	require.Same(t, lost, job.Leave(lost))
	require.NoError(t, job.Leave(nil))
	require.NoError(t, job.Barrier("x"))
	require.NoError(t, job.Close())
	require.Equal(t, "one process", job.String())
}
