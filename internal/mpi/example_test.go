package mpi_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/internal/mpi"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// A process started by mpirun joins its job, and lets a plugin's programs call MPI.
func Example() {
	library, err := mpi.Open("")
	if err != nil {
		log.Fatal(err)
	}
	world, err := library.Init()
	if err != nil {
		log.Fatal(err)
	}
	defer world.Finalize()
	fmt.Println(library.Version(), "rank", world.Rank(), "of", world.Size(), world.Warnings())

	plugin, err := pjrt.Load("/opt/pjrt/cpu.so")
	if err != nil {
		log.Fatal(err)
	}
	for name, function := range world.Handlers() {
		if err := plugin.RegisterHandler(name, "Host", function); err != nil {
			log.Fatal(err)
		}
	}
}
