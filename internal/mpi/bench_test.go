//lazo:norace
package mpi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// chained is a program that sums an array in place over two ranks, times times: in consecutive calls, or in a loop.
// With 0 it returns the array.
func chained(n, times int, loop bool) string {
	const call = `stablehlo.custom_call @lazo.all_reduce(%s, %s) {api_version = 4 : i32, backend_config = {site = 1 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}, ` +
		`output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]} : (%[3]s, !stablehlo.token) -> (%[3]s, !stablehlo.token)`
	array := fmt.Sprintf("tensor<%dxf32>", n)
	var body strings.Builder
	x := "%x"
	if loop {
		fmt.Fprintf(&body, `%%zero = stablehlo.constant dense<0> : tensor<i32>
%%end = stablehlo.constant dense<%d> : tensor<i32>
%%one = stablehlo.constant dense<1> : tensor<i32>
%%w:3 = stablehlo.while(%%i = %%zero, %%v = %%x, %%s = %%t0) : tensor<i32>, %s, !stablehlo.token
cond {
%%go = stablehlo.compare LT, %%i, %%end : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %%go : tensor<i1>
} do {
%%r:2 = %s
%%next = stablehlo.add %%i, %%one : tensor<i32>
stablehlo.return %%next, %%r#0, %%r#1 : tensor<i32>, %s, !stablehlo.token
}
`, times, array, fmt.Sprintf(call, "%v", "%s", array), array)
		x = "%w#1"
	} else {
		token := "%t0"
		for i := range times {
			fmt.Fprintf(&body, "%%r%d:2 = %s\n", i, fmt.Sprintf(call, x, token, array))
			x, token = fmt.Sprintf("%%r%d#0", i), fmt.Sprintf("%%r%d#1", i)
		}
	}
	return fmt.Sprintf("module @chain {\nfunc.func @main(%%x: %[1]s {tf.aliasing_output = 0 : i32}) -> %[1]s {\n%%t0 = stablehlo.create_token : !stablehlo.token\n%[2]sreturn %[3]s : %[1]s\n}}",
		array, body.String(), x)
}

// BenchmarkExchange compares a sum over two ranks in place: MPI_Allreduce called by the host, by a program of calls,
// and by a program's loop. It prints medians of a call in one table, from rank 0:
//
//	LAZO_TEST_MPIRUN=mpirun go test ./internal/mpi -run '^$' -bench Exchange -benchtime 1x
func BenchmarkExchange(b *testing.B) {
	if os.Getenv(rankTest) == "" {
		command := append(launcherCommand(b), "-np", "2", os.Args[0], "-test.run", "^$", "-test.bench", "^BenchmarkExchange$", "-test.benchtime", "1x")
		out, err := jobOf(b, command, rankTest+"=BenchmarkExchange").CombinedOutput()
		require.NoError(b, err, "%s", out)
		for line := range strings.Lines(string(out)) {
			if table, ok := strings.CutPrefix(line, "| "); ok {
				fmt.Print("| " + table)
			}
		}
		return
	}
	w := join(b)
	require.Equal(b, 2, w.Size())
	var table strings.Builder
	fmt.Fprintf(&table, "\n| %s | bare µs | in a program µs | ratio | in a loop µs | ratio |\n| --- | --- | --- | --- | --- | --- |\n", w.Library().Version())
	for _, size := range []struct {
		name               string
		bytes, calls, runs int
	}{{"4 KB", 4 << 10, 64, 200}, {"1 MB", 1 << 20, 64, 30}, {"100 MB", 100 << 20, 2, 8}} {
		n := size.bytes / 4
		c, err := host()
		require.NoError(b, err)
		// A program without a call shows the time of the run itself.
		names := []string{"none", "calls", "loop"}
		programs := make([]*pjrt.Call, len(names))
		for i, text := range []string{chained(n, 0, false), chained(n, size.calls, false), chained(n, size.calls, true)} {
			programs[i], err = compile(b, text).NewCall(pjrt.CallOptions{InPlace: map[int]int{0: 0}})
			require.NoError(b, err)
			defer programs[i].Close()
			x, err := c.Devices()[0].Put(pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{n}}, Data: make([]byte, size.bytes)})
			require.NoError(b, err)
			require.NoError(b, programs[i].Set(0, 0, x))
		}
		var bare, calls, loop []float64
		values := make([]float32, n)
		for range size.runs { // alternately, so that other load on the machine affects all
			require.NoError(b, w.Barrier())
			begin := time.Now()
			for range size.calls {
				require.NoError(b, w.Sum(values))
			}
			bare = append(bare, float64(time.Since(begin).Nanoseconds())/1e3/float64(size.calls))
			var took [3]float64
			for i, p := range programs {
				require.NoError(b, w.Barrier())
				begin := time.Now()
				_, err := p.Run()
				require.NoError(b, err)
				took[i] = float64(time.Since(begin).Nanoseconds()) / 1e3
			}
			calls = append(calls, (took[1]-took[0])/float64(size.calls))
			loop = append(loop, (took[2]-took[0])/float64(size.calls))
		}
		m, p, l := median(bare), median(calls), median(loop)
		fmt.Fprintf(&table, "| %s | %.1f | %.1f | %.2f | %.1f | %.2f |\n", size.name, m, p, p/m, l, l/m)
	}
	if w.Rank() == 0 {
		fmt.Print(table.String())
	}
	require.NoError(b, w.Finalize())
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
