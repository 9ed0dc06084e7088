package series_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
)

func ExampleWindows() {
	table, err := data.New(data.Named("day", []string{"2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"}, 5),
		data.Named("sales", []float32{1, 2, 3, 4, 5}, 5))
	if err != nil {
		log.Fatal(err)
	}
	windows := series.Windows{Length: 2, Targets: []string{"sales"}, Time: "day"}
	parts, err := windows.Split(table, 0.8)
	if err != nil {
		log.Fatal(err)
	}
	last, err := windows.Last(table)
	if err != nil {
		log.Fatal(err)
	}
	for _, set := range append(parts, last) {
		for _, f := range set.Fields() {
			fmt.Println(f.Name, f.Array.Dims, f.Array.Flat)
		}
	}
	// Output:
	// sales [2 2] [1 2 2 3]
	// next sales [2 1] [3 4]
	// day [2] [2026-01-02 2026-01-03]
	// sales [1 2] [3 4]
	// next sales [1 1] [5]
	// day [1] [2026-01-04]
	// sales [1 2] [4 5]
	// day [1] [2026-01-05]
}
