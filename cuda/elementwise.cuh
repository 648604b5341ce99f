// elementwise.cuh - one operation over n elements.
//
//   unary<T, R, Op>    y[i] = op(a[i * a_step])
//   binary<T, R, Op>   y[i] = op(a[i * a_step], b[i * b_step])
//
// y has n elements, one after the other.  The step of an operand is 1 if it has the shape of y,
// 0 if it is one element for all of them.  Grid-strided, so any launch shape is correct.  y may
// be an operand with step 1: an element is read and written by the same thread, in this order;
// for the same reason no pointer is __restrict__.  Op is a function object without state whose
// call operator is a __device__ function; R differs from T in comparisons.

template <typename T, typename R, typename Op>
__global__ void unary(const T* a, long long a_step, R* y, long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  const Op op;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    y[i] = op(a[i * a_step]);
  }
}

template <typename T, typename R, typename Op>
__global__ void binary(const T* a, long long a_step, const T* b, long long b_step, R* y,
                       long long n) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  const Op op;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    y[i] = op(a[i * a_step], b[i * b_step]);
  }
}
