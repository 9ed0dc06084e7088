module @step attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} { sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%p0: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %p1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>, tf.aliasing_output = 0 : i32}, %p2: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %0 = "stablehlo.dot_general"(%p0, %p1) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_contracting_dimensions = [1]
>
    } : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32> loc("program:3")
    %1 = stablehlo.constant dense<0.0> : tensor<f32> loc("program:8")
    return %p1, %1 : tensor<8x4xf32>, tensor<f32>
  }
}
