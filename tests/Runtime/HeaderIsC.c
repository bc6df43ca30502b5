#include "ajour/ABI/ArtifactHeader.h"
#include "ajour/ABI/CpuFeatures.h"
#include "ajour/ABI/Dispatch.h"
#include "ajour/ajour.h"

int ajour_header_is_c(void);
int ajour_header_is_c(void) {
  ajour_tensor_info info = AJOUR_INIT(ajour_tensor_info);
  return (int)info.struct_size;
}
