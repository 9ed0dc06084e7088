module @flow {
  func.func public @main(%p0: tensor<2xf32>, %p1: tensor<i32>) -> (tensor<2xf32>, tensor<i32>) {
    %5 = "stablehlo.constant"() { value = dense<0> : tensor<i32> } : () -> tensor<i32>
    %6, %7 = "stablehlo.while"(%p0, %5) ({
      ^cond(%arg3: tensor<2xf32>, %arg4: tensor<i32>) :
          %1 = "stablehlo.compare"(%arg4, %p1) {
            compare_type = #stablehlo<comparison_type SIGNED>,
            comparison_direction = #stablehlo<comparison_direction LT>
          } : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%1) : (tensor<i1>) -> ()
    }, {
      ^body(%arg6: tensor<2xf32>, %arg7: tensor<i32>) :
          %2 = "func.call"(%arg6) { callee = @f0 } : (tensor<2xf32>) -> tensor<2xf32>
          %3 = "stablehlo.constant"() { value = dense<1> : tensor<i32> } : () -> tensor<i32>
          %4 = "stablehlo.add"(%arg7, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
          "stablehlo.return"(%2, %4) : (tensor<2xf32>, tensor<i32>) -> ()
    }) : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i32>)
    return %6, %7 : tensor<2xf32>, tensor<i32>
  }
  func.func private @f0(%arg2: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = "stablehlo.add"(%arg2, %arg2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
