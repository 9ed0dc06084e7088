//lazo:norace
package plots_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics/plots"
)

func ExampleHistory() {
	history := new(loop.History)
	for epoch := range 3 {
		var logs loop.Logs
		logs.Metric("epoch", float64(epoch+1))
		logs.Loss("loss", 1/float64(epoch+1))
		logs.Loss("val_loss", 1.1/float64(epoch+1))
		history.Commit(loop.Elapsed{Steps: int64(100 * (epoch + 1))}, logs, 32)
	}
	var svg bytes.Buffer // or a file: plots.History(history).Save("history.png")
	must.M(plots.History(history).SVG(&svg))
	fmt.Println(bytes.Contains(svg.Bytes(), []byte("best: 0.3667, epoch 3")))
	fmt.Println(errors.Is(plots.History(history, "acuracy").Err(), loop.ErrNoEntry))
	// Output:
	// true
	// true
}

func ExampleROCCurve() {
	curve := must.M1(plots.ROCCurve([]bool{false, true, false, true}, []float64{0.1, 0.4, 0.35, 0.8}))
	fmt.Println(curve.X, curve.Y, curve.Area)
	// Output:
	// [0 0 0 0.5 1] [0 0.5 1 1 1] 1
}
