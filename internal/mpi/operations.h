// Operations over numbers that MPI has not, or has without a rule for NaN.
#ifndef LAZO_MPI_OPERATIONS_H_
#define LAZO_MPI_OPERATIONS_H_

#include "library.h"

// lazo_own gives the operation over elements of a number type of ffi.h, null where MPI's own is to be taken or where there
// is none.
lazo_operation *lazo_own(int dtype, int op);

#endif
