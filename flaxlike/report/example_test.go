//lazo:norace
package report_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

func ExampleRun_Save() {
	ctx := context.Background()
	training, test := must.M2(data.Digits())
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy")))
	history := must.M1(model.Fit(ctx, training, flaxlike.Fit{Validation: test, Output: io.Discard}))
	dir := must.M1(os.MkdirTemp("", "report"))
	must.M(report.Run{Title: "Digits", Model: model, History: history, Test: test}.Save(ctx, dir))
	page := must.M1(os.Stat(filepath.Join(dir, "report.html")))
	fmt.Println(page.Size() > 100_000)
	must.M(os.RemoveAll(dir))
	must.M(model.Close())
	// Output: true
}
