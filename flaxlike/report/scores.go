package report

import (
	"fmt"

	"github.com/lazo-ml/lazo/metrics/plots"
)

type tally struct{ hits, said, are []int }

func (c *classified) tally(of []int32) tally {
	n := len(c.names)
	t := tally{make([]int, n), make([]int, n), make([]int, n)}
	for i, label := range c.labels {
		switch {
		case !c.counts[i]:
		case c.kind == "multi-label":
			k := i % n
			t.are[k] += int(label)
			t.said[k] += int(of[i])
			t.hits[k] += int(label * of[i])
		default:
			t.are[label]++
			t.said[of[i]]++
			if label == of[i] {
				t.hits[label]++
			}
		}
	}
	return t
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// score has scikit-learn's numbers, 0 where it divides by 0.
type score struct{ precision, recall, f1 float64 }

func scoreOf(hits, said, are int) score {
	return score{ratio(float64(hits), float64(said)), ratio(float64(hits), float64(are)), ratio(float64(2*hits), float64(said+are))}
}

func (s score) cells() []string {
	return []string{fmt.Sprintf("%.4f", s.precision), fmt.Sprintf("%.4f", s.recall), fmt.Sprintf("%.4f", s.f1)}
}

const mostClassRows = 200

func (c *classified) scores(of []int32, thresholds []float64) *plots.Figure {
	t := c.tally(of)
	head := []string{"class", "precision", "recall", "F1", "support"}
	if thresholds != nil {
		head = append(head, "threshold")
	}
	var rows [][]string
	var macro, weighted score
	hits, said, are := 0, 0, 0
	add := func(name string, s score, support int, threshold string) {
		row := append(append([]string{name}, s.cells()...), fmt.Sprint(support))
		if thresholds != nil {
			row = append(row, threshold)
		}
		rows = append(rows, row)
	}
	for k, name := range c.names {
		s, n := scoreOf(t.hits[k], t.said[k], t.are[k]), float64(len(c.names))
		macro = score{macro.precision + s.precision/n, macro.recall + s.recall/n, macro.f1 + s.f1/n}
		w := float64(t.are[k])
		weighted = score{weighted.precision + w*s.precision, weighted.recall + w*s.recall, weighted.f1 + w*s.f1}
		hits, said, are = hits+t.hits[k], said+t.said[k], are+t.are[k]
		threshold := ""
		switch {
		case len(thresholds) > 0 && c.kind == "multi-label":
			threshold = fmt.Sprintf("%.6g", thresholds[min(k, len(thresholds)-1)])
		case len(thresholds) > 0 && k == 1:
			threshold = fmt.Sprintf("%.6g", thresholds[0])
		}
		if k < mostClassRows {
			add(name, s, t.are[k], threshold)
		}
	}
	if len(c.names) > mostClassRows {
		rows = append(rows, append([]string{fmt.Sprintf("… %d more", len(c.names)-mostClassRows)}, make([]string, len(head)-1)...))
	}
	sum := float64(are)
	micro := "micro average"
	if c.kind != "multi-label" {
		micro = "micro average (accuracy)"
	}
	add(micro, scoreOf(hits, said, are), are, "")
	add("macro average", macro, are, "")
	add("weighted average", score{ratio(weighted.precision, sum), ratio(weighted.recall, sum), ratio(weighted.f1, sum)}, are, "")
	return plots.Table("Metrics per class", head, rows...)
}

func (c *classified) confusion(of []int32) *plots.Figure {
	n := len(c.names)
	if c.kind == "multi-label" {
		t := c.tally(of)
		var rows [][]string
		for k, name := range c.names[:min(n, mostClassRows)] {
			all := len(c.labels) / n
			rows = append(rows, []string{name, fmt.Sprint(t.hits[k]), fmt.Sprint(t.said[k] - t.hits[k]), fmt.Sprint(t.are[k] - t.hits[k]), fmt.Sprint(all - t.said[k] - t.are[k] + t.hits[k])})
		}
		return plots.Table("Confusion of each class", []string{"class", "true positive", "false positive", "false negative", "true negative"}, rows...)
	}
	counts := make([][]int, n)
	for i := range counts {
		counts[i] = make([]int, n)
	}
	for i, label := range c.labels {
		if c.counts[i] {
			counts[label][of[i]]++
		}
	}
	return plots.Confusion(counts, c.names)
}
