package decision_test

import (
	"fmt"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/flaxlike/decision"
)

// A threshold above which all examples belong to the class.
func ExampleAim_Choose() {
	chosen := must.M1(decision.Aim{Precision: 1}.Choose([]float64{0.1, 0.4, 0.6, 0.8}, []bool{false, true, false, true}))
	fmt.Printf("above %.1f: precision %g, recall %g\n", chosen.Value, chosen.Precision, chosen.Recall)
	// Output: above 0.7: precision 1, recall 0.5
}

// Logits that are too large for how often they are right have a temperature above 1.
func ExampleCalibration_FitTemperature() {
	var c decision.Calibration
	must.M(c.FitTemperature([]float64{9, 0, 9, 0, 9, 0, 0, 9}, []float64{0, 0, 1, 1}, 2))
	fmt.Println(c.Temperature() > 1)
	// Output: true
}
