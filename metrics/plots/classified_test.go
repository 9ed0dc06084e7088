package plots_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// Curves, areas and counts are scikit-learn's (testdata/curves.py), on scores that are equal, constant or all of one
// class.
func TestPeers_curves(t *testing.T) {
	var peer struct {
		Curves []struct {
			Name     string
			Positive []bool
			Scores   []float64
			ROC, PR  *plots.Curve
		}
		Several []struct {
			Labels, Predicted []int
			Scores            [][]float64
			Confusion         [][]int
			AUC, AP           []*float64
		}
	}
	text, err := os.ReadFile("testdata/curves.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &peer))
	compared, worst := 0, 0.0
	same := func(name string, expected *plots.Curve, curve plots.Curve, err error) {
		if expected == nil {
			require.ErrorIs(t, err, plots.ErrOneClass, name)
			return
		}
		require.NoError(t, err, name)
		require.Len(t, curve.X, len(expected.X), name)
		worst = max(worst, math.Abs(expected.Area-curve.Area))
		require.InDelta(t, expected.Area, curve.Area, 1e-14, name)
		require.InDeltaSlice(t, expected.X, curve.X, 1e-15, name)
		require.InDeltaSlice(t, expected.Y, curve.Y, 1e-15, name)
		compared += 2*len(curve.X) + 1
	}
	for _, c := range peer.Curves {
		roc, err := plots.ROCCurve(c.Positive, c.Scores)
		same(c.Name, c.ROC, roc, err)
		pr, err := plots.PrecisionRecallCurve(c.Positive, c.Scores)
		same(c.Name, c.PR, pr, err)
	}
	require.Equal(t, 3, len(peer.Several))
	for _, s := range peer.Several {
		c := plots.Classified{Labels: s.Labels, Scores: s.Scores}
		for k := range s.Confusion {
			c.Classes = append(c.Classes, fmt.Sprint("class ", k))
		}
		predicted, err := c.Predicted()
		require.NoError(t, err)
		require.Equal(t, s.Predicted, predicted)
		counts, err := c.Counts()
		require.NoError(t, err)
		require.Equal(t, s.Confusion, counts)
		roc, pr := svgOf(t, plots.ROC(c)).texts, svgOf(t, plots.PrecisionRecall(c)).texts
		for k, name := range c.Classes {
			switch {
			case len(c.Classes) == 2 && k == 0:
				require.NotContains(t, fmt.Sprint(roc, pr), name, "one curve of two classes")
			case s.AUC[k] == nil:
				require.Contains(t, roc, name+": no example is of it")
				require.Contains(t, pr, name+": no example is of it")
			default:
				require.Contains(t, roc, fmt.Sprintf("%s (AUC %.3f)", name, *s.AUC[k]))
				require.Contains(t, pr, fmt.Sprintf("%s (AP %.3f)", name, *s.AP[k]))
				compared += 2
			}
		}
	}
	t.Logf("%d numbers, areas within %.1e", compared, worst)
}

func TestClassified_refuses(t *testing.T) {
	two := []string{"no", "yes"}
	for what, c := range map[string]plots.Classified{
		"two classes or more":            {Classes: two[:1], Labels: []int{0}, Scores: [][]float64{{1}}},
		`"no" is named twice`:            {Classes: []string{"no", "no"}, Labels: []int{0}, Scores: [][]float64{{1, 0}}},
		"no examples":                    {Classes: two},
		"2 labels for the scores of 1":   {Classes: two, Labels: []int{0, 1}, Scores: [][]float64{{1, 0}}},
		"the label of example 0 is 2":    {Classes: two, Labels: []int{2}, Scores: [][]float64{{1, 0}}},
		"the label of example 0 is -1":   {Classes: two, Labels: []int{-1}, Scores: [][]float64{{1, 0}}},
		"example 0 has 3 scores":         {Classes: two, Labels: []int{0}, Scores: [][]float64{{1, 0, 0}}},
		`0 for class "yes" is NaN`:       {Classes: two, Labels: []int{0}, Scores: [][]float64{{1, math.NaN()}}},
		"the examples are all of one cl": {Classes: two, Labels: []int{0}, Scores: [][]float64{{1, 0}}},
	} {
		require.ErrorContains(t, plots.ROC(c).Err(), what)
		require.ErrorContains(t, plots.PrecisionRecall(c).Err(), what)
		if _, err := c.Counts(); what != "the examples are all of one cl" {
			require.ErrorContains(t, err, what)
		} else {
			require.NoError(t, err)
		}
	}
	c := plots.Classified{Classes: two, Labels: []int{0, 1}, Scores: [][]float64{{1, 0}, {0, 1}}}
	require.ErrorContains(t, plots.ROC(c, "yse").Err(), `no class "yse"; the classes are ["no" "yes"]`)
	require.ErrorContains(t, plots.ROC(c, "no", "no").Err(), "named twice")
	require.Contains(t, svgOf(t, plots.ROC(c, "no")).texts, "no (AUC 1.000)")
	_, err := plots.ROCCurve([]bool{true}, nil)
	require.ErrorContains(t, err, "1 labels for 0 scores")
	_, err = plots.ROCCurve(nil, nil)
	require.ErrorContains(t, err, "no examples")
	_, err = plots.PrecisionRecallCurve([]bool{true}, []float64{math.NaN()})
	require.ErrorContains(t, err, "example 0 is NaN")
}

func TestConfusion(t *testing.T) {
	d := svgOf(t, plots.Confusion([][]int{{3, 1, 0}, {0, 4, 4}, {0, 0, 0}}, []string{"cat", "dog", "<b>"}))
	for _, text := range []string{"Confusion matrix", "7 of 12 examples are right (58.3%)", "label", "prediction", "cat",
		"<b>", "75.0%", "50.0%", "–"} {
		require.Contains(t, d.texts, text)
	}
	many := make([][]int, 26)
	names := make([]string, 26)
	for i := range many {
		many[i], names[i] = make([]int, 26), fmt.Sprint("class ", i)
		many[i][i] = 1
	}
	require.NotContains(t, svgOf(t, plots.Confusion(many, names)).texts, "100.0%", "colours alone")
	for what, f := range map[string]*plots.Figure{
		"two classes or more":       plots.Confusion(nil, nil),
		"1 rows for 2 classes":      plots.Confusion([][]int{{1, 2}}, []string{"a", "b"}),
		"row 1 of the counts has 1": plots.Confusion([][]int{{1, 2}, {1}}, []string{"a", "b"}),
		"is -1: it must not":        plots.Confusion([][]int{{1, 2}, {-1, 1}}, []string{"a", "b"}),
		"there are no examples":     plots.Confusion([][]int{{0, 0}, {0, 0}}, []string{"a", "b"}),
		"named twice":               plots.Confusion([][]int{{0, 0}, {0, 0}}, []string{"a", "a"}),
		"more than the 200":         plots.Confusion(nil, append(make([]string, 0), manyNames(201)...)),
	} {
		require.ErrorContains(t, f.Err(), what)
	}
}

func manyNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// Of examples with several classes, each class has its curves, also of two classes.
func TestClassified_severalClasses(t *testing.T) {
	c := plots.Classified{Classes: []string{"a", "b"}, Positive: [][]bool{{true, true}, {false, true}, {true, false}}, Scores: [][]float64{{0.9, 0.8}, {0.2, 0.7}, {0.1, 0.75}}}
	require.Contains(t, svgOf(t, plots.ROC(c)).texts, "a (AUC 0.500)")
	require.Contains(t, svgOf(t, plots.ROC(c)).texts, "b (AUC 0.500)")
	require.Contains(t, svgOf(t, plots.PrecisionRecall(c)).texts, "b (AP 0.833)")
	require.Contains(t, svgOf(t, plots.ReliabilityDiagram(c)).texts, "a (ECE 0.400)")
	require.Contains(t, svgOf(t, plots.ReliabilityDiagram(c, "b")).texts, "b (ECE 0.283)")
	_, err := c.Predicted()
	require.ErrorContains(t, err, "an example may have several classes")
	c.Positive[1] = nil
	require.ErrorContains(t, plots.ROC(c).Err(), "example 1 has 0 classes in Positive, expected 2")
	c.Positive = c.Positive[:1]
	require.ErrorContains(t, plots.ROC(c).Err(), "1 rows of Positive for the scores of 3 examples")
	c.Labels = []int{1}
	require.ErrorContains(t, plots.ROC(c).Err(), "it has Labels and Positive")
}
