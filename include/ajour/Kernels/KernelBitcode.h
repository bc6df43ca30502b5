/// The CPU micro-kernels as LLVM bitcode, embedded in the compiler: one module for each architecture,
/// [begin, end). Link only what a model needs and inline it (kernels/README.md).
#ifndef AJOUR_KERNELS_KERNELBITCODE_H
#define AJOUR_KERNELS_KERNELBITCODE_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char ajour_kernels_x86_64_begin[], ajour_kernels_x86_64_end[];
extern const char ajour_kernels_aarch64_begin[], ajour_kernels_aarch64_end[];

#ifdef __cplusplus
}
#endif

#endif
