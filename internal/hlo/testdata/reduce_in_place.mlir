module @reduce_in_place {
  func.func public @main(%p0: tensor<3xf32> {tf.aliasing_output = 1 : i32}, %p1: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = "stablehlo.constant"() { value = dense<0xff800000> : tensor<f32> } : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%p1, %0) ({
      ^reductionFn(%arg2: tensor<f32>, %arg3: tensor<f32>) :
          %1 = "stablehlo.maximum"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 0> } : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3 = "stablehlo.subtract"(%p0, %2) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    return %2, %3 : tensor<3xf32>, tensor<3xf32>
  }
}
