package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics/plots"
)

const mostVariables = 60

func (r Run) weights(d *draft) error {
	var names []string
	rows := slices.DeleteFunc(r.Model.Summary().Rows,
		func(v managed.Row) bool { return v.Kind != managed.Parameter || v.Size == 0 })
	if len(rows) > mostVariables {
		d.leaveOut("Weights", fmt.Errorf("%d of the %d variables are drawn, those of the most numbers", mostVariables,
			len(rows)))
		slices.SortStableFunc(rows, func(a, b managed.Row) int { return int(b.Size - a.Size) })
		rows = rows[:mostVariables]
	}
	for _, v := range rows {
		names = append(names, v.Layer+"/"+v.Name)
	}
	if len(names) == 0 {
		d.leaveOut("Weights", errors.New("the model has no variables before its first batch"))
		return nil
	}
	var all []plots.Weights
	for _, name := range names {
		v, err := r.Model.Value(name)
		if err != nil {
			return err
		}
		w := plots.Weights{Name: strings.TrimPrefix(name, "/model/")}
		err = v.ConstFlatData(func(flat any) {
			for _, n := range numbers(flat) {
				w.Values = append(w.Values, float32(n))
			}
		})
		if err != nil {
			return err
		}
		if len(w.Values) == 0 {
			d.leaveOut("Weights "+w.Name, fmt.Errorf("its %s are not real numbers", v.Shape().DType))
			continue
		}
		all = append(all, w)
	}
	d.draw(plots.Histograms(all...))
	return nil
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
