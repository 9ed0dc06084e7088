package tables_test

import (
	"encoding/json"
	"fmt"
	"log"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func ExampleRead() {
	file := "length,width,kind\n5.1,3.5,setosa\n6.3,,virginica\n"
	set, err := tables.Read(strings.NewReader(file), tables.Format{Fields: []tables.Field{
		{Name: "x", Fill: "3"},
		{Name: "y", Columns: []string{"kind"}, Classes: []string{"setosa", "virginica"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range set.Fields() {
		fmt.Println(f.Name, f.Array.Dims, f.Array.Flat)
	}
	_, err = tables.Read(strings.NewReader(file), tables.Format{Fields: []tables.Field{{Name: "x", Columns: []string{"width"}}}})
	fmt.Println(err)
	// Output:
	// x [2 2] [5.1 3.5 6.3 3]
	// y [2] [0 1]
	// tables: read csv: row 2 (line 3), column "width": the cell "" marks a missing value; set Field.Fill to its replacement, or leave the column out
}

func ExampleFit() {
	file := "mass,island,species\n3.5,Dream,a\n,Biscoe,b\n4.5,Dream,b\n"
	table, err := tables.Read(strings.NewReader(file), tables.Format{Texts: true})
	if err != nil {
		log.Fatal(err)
	}
	preparation, err := tables.Fit(table,
		tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.MinMax},
		tables.Categories{Columns: []string{"island"}, Unknown: tables.UnknownZeros},
		tables.Labels{Columns: []string{"species"}})
	if err != nil {
		log.Fatal(err)
	}
	training, err := table.Map(preparation.Apply)
	if err != nil {
		log.Fatal(err)
	}
	table, err = preparation.Table(map[string]any{"mass": 5.5, "island": "Torgersen"})
	if err != nil {
		log.Fatal(err)
	}
	one, err := table.Map(preparation.Inputs)
	if err != nil {
		log.Fatal(err)
	}
	for _, set := range []*data.Set{training, one} {
		for _, f := range set.Fields() {
			fmt.Println(f.Name, f.Array.Dims, f.Array.Flat)
		}
	}
	names, _ := preparation.Names("x")
	classes, _ := preparation.Classes("y")
	fmt.Println(names, classes)
	_, err = preparation.Table(map[string]any{"mass": 4, "isle": "Dream"})
	fmt.Println(err)
	// Output:
	// x [3 3] [0 0 1 0.5 1 0 1 0 1]
	// y [3] [0 1 1]
	// x [1 3] [2 0 0]
	// [mass island=Biscoe island=Dream] [a b]
	// tables: preparation: table: row 1: the preparation has no column "isle"; there are ["island" "mass" "species"]
}

func ExampleFunctions() {
	functions := tables.Functions{"density": func(row []string) ([]float32, error) {
		mass, err := strconv.ParseFloat(row[0], 32)
		if err != nil {
			return nil, err
		}
		volume, err := strconv.ParseFloat(row[1], 32)
		return []float32{float32(mass / volume)}, err
	}}
	table, err := tables.Read(strings.NewReader("day,mass,volume,island\n2026-11-28,6,2,Dream\n2026-11-29,5,1,Biscoe\n"), tables.Format{Texts: true})
	if err != nil {
		log.Fatal(err)
	}
	fitted, err := tables.Fit(table,
		tables.Dates{Columns: []string{"day"}, Parts: []string{"month", "day_of_week"}},
		tables.Function{Name: "density", Columns: []string{"mass", "volume"}, Of: functions["density"]},
		tables.Hashed{Columns: []string{"island"}, Buckets: 100, Integers: true})
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(fitted)
	if err != nil {
		log.Fatal(err)
	}
	preparation, err := functions.Unmarshal(text) // in another program
	if err != nil {
		log.Fatal(err)
	}
	set, err := table.Map(preparation.Inputs)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range set.Fields() {
		fmt.Println(f.Name, f.Array.Dims, f.Array.Flat)
	}
	fmt.Println(preparation.Names("x"))
	// Output:
	// x [2 3] [11 5 3 11 6 5]
	// island [2] [16 10]
	// [day month day day_of_week density] <nil>
}

func ExamplePreparation_Example() {
	table, err := tables.Read(strings.NewReader("mass,island,species\n3.5,Dream,a\n4.5,Biscoe,b\n"), tables.Format{Texts: true})
	if err != nil {
		log.Fatal(err)
	}
	preparation, err := tables.Fit(table, tables.Numbers{Columns: []string{"mass"}}, tables.Categories{Columns: []string{"island"}}, tables.Labels{Columns: []string{"species"}})
	if err != nil {
		log.Fatal(err)
	}
	row, err := preparation.Example()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range row.Fields() {
		fmt.Println(f.Name, f.Array.Flat.([]string)[0])
	}
	// Output:
	// mass 0
	// island Biscoe
}
